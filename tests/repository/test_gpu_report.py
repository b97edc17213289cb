"""Every step of `make gpu` but the build, on the simulator."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata

import pytest

from collector.bench.benchmark_report import Report

pytestmark = pytest.mark.simulator


@pytest.fixture
def gpu_report(load_script, tmp_path, monkeypatch):
    module = load_script("gpu_report")
    for name in ("BUILD", "SITE", "WHEELS_SITE", "RUN"):
        monkeypatch.setattr(module, name, tmp_path / name.lower())
    monkeypatch.setenv("COLLECTOR_WHEELS", str(tmp_path / "none"))  # not those of this checkout
    monkeypatch.setattr(module, "list_packages", lambda report: None)  # of a test of its own
    return module


@pytest.fixture
def report(gpu_report, tmp_path):
    gpu_report.RUN.mkdir()
    return gpu_report.Report(tmp_path, {}, sys.executable, True)


@pytest.mark.slow
def test_every_step_runs_on_the_simulator(gpu_report, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "out"
    # All of them run on the simulator in test_gpu_tests_on_simulator.py.
    tests = gpu_report.run_tests("Tests", "tests.log", gpu_report.Module("completeness"))
    monkeypatch.setitem(gpu_report.STEPS, "tests", (tests, 240))
    monkeypatch.setitem(gpu_report.STEPS, "frameworks", (lambda report, seconds: None, 240))
    monkeypatch.setattr(gpu_report, "NEEDED", {})
    monkeypatch.setitem(gpu_report.STEPS, "build", (lambda report, seconds: None, 240))
    monkeypatch.setitem(gpu_report.STEPS, "examples", (lambda report, seconds: None, 240))  # test_gpu_examples.py
    for questions in ("first_questions", "questions"):  # test_gpu_questions.py
        monkeypatch.setitem(gpu_report.STEPS, questions, (lambda report, seconds: None, 240))
    # On a busy machine, too, no step may be ended by its limit.
    monkeypatch.setattr(sys, "argv", ["gpu_report.py", str(folder), "--simulated", "--seconds", "4000"])
    status = gpu_report.main()
    printed = capsys.readouterr().out
    assert status == 0, printed
    figures = (
        "saxpy", "overhead", "budget", "completeness", "harness", "stop_to_file", "sessions", "killed", "memory",
        "decode", "streaming", "recorder", "peers", "floors",
    )  # fmt: skip
    # Without PyTorch a training step is not run, and leaves no figures.
    found = {path.name for path in folder.iterdir() if path.suffix != ".processes"}
    assert found - {"training_step.json"} == {
        "report.md", "report.json", "tests.log", "recordings", "demo.json", "saxpy.html",
        *(f"{name}.json" for name in figures),
    }  # fmt: skip
    names = {f"{name}.{suffix}" for name in ("cuda_step", "nvtx_step") for suffix in ("gpurec", "pb", "json")}
    assert {path.name for path in (folder / "recordings").iterdir()} == names
    text = (folder / "report.md").read_text()
    assert "Everything passed." in text
    assert "Not run" not in text
    for title in (
        "Tests", "What tracing costs", "Comparing kernels", "Recorded: cuda_step", "Recorded: nvtx_step",
        "What is recorded of all launches",
        "The harness against do_bench", "From the end of a step to its file", "Memory", "Decoding and callbacks",
        "A step of training in PyTorch", "A long trace, streamed and in memory", "The flight recorder",
        "What an NVTX range costs",
    ):  # fmt: skip
        assert f"## {title}" in text
    assert "passed" in (folder / "tests.log").read_text()
    overhead = Report.load(folder / "overhead.json")
    launch = overhead.comparisons[0]
    ours = {"collector, kernels", "collector, all", "collector, all, journal"}
    assert set(launch.arms) == {"none", "floor, kernels", "floor, all", *ours}
    assert any("kineto" in arm for arm in launch.failures)
    assert {arm.facts["lost"] for arm in launch.arms.values()} == {"nothing said"}
    for comparison in Report.load(folder / "completeness.json").comparisons:
        assert all(set(arm.times_ns) == {1.0} for arm in comparison.arms.values()), comparison.title
    saxpy = Report.load(folder / "saxpy.json")
    assert [each.title for each in saxpy.comparisons][-1] == "tiny"
    assert not saxpy.failures
    assert re.search(r"\| traced \| \d", text)
    assert re.search(r"a launch streamed, of in memory: \d", text)
    assert re.search(r"a dump, ms: \d", text)


def test_some_steps_join_the_report_of_an_earlier_call(gpu_report, tmp_path, monkeypatch):
    def step(title):
        return lambda report, seconds: report.add_section(title, f"{seconds:.0f} s")

    done = []
    steps = {"build": (lambda report, seconds: done.append("build"), 100), "one": (step("One"), 100)}
    steps |= {"two": (step("Two"), 50), "three": (step("Three"), 50)}
    monkeypatch.setattr(gpu_report, "STEPS", steps)
    monkeypatch.setattr(gpu_report, "NEEDED", {})
    monkeypatch.setattr(gpu_report, "machine", lambda report: ("Simulated GPU", "| it |"))

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["gpu_report.py", str(tmp_path / "out"), "--simulated", *arguments])
        assert gpu_report.main() == 0
        return (tmp_path / "out" / "report.md").read_text()

    first = run("--steps", "build,one,two", "--seconds", "200")
    assert first.index("## One\n\n150 s") < first.index("## Two\n\n200 s")  # what the steps after it leave
    gpu_report.SITE.mkdir()
    text = run("--steps", "two,three", "--seconds", "60")
    assert done == ["build"]
    assert "## One\n\n150 s" in text
    assert "## Two\n\n50 s" in text  # at least its own limit
    assert "## Three\n\n60 s" in text
    assert "| it |" in text
    late = run("--steps", "one", "--seconds", "5")
    assert "## one\n\nNot run: no time left. `scripts/gpu_report.py --steps one` does it." in late
    with pytest.raises(SystemExit):
        run("--steps", "four")


def test_a_failure_stays_in_the_report_until_its_step_has_passed(gpu_report, tmp_path, monkeypatch):
    status = [1]

    def step(report, seconds):
        report.run("its work", [sys.executable, "-c", f"import sys; sys.exit({status[0]})"], 30)

    monkeypatch.setattr(gpu_report, "STEPS", {"one": (step, 30), "two": (lambda report, seconds: None, 30)})
    monkeypatch.setattr(gpu_report, "NEEDED", {})
    monkeypatch.setattr(gpu_report, "machine", lambda report: ("Simulated GPU", "| it |"))
    gpu_report.SITE.mkdir()

    def run(step):
        monkeypatch.setattr(sys, "argv", ["gpu_report.py", str(tmp_path / "out"), "--simulated", "--steps", step])
        return gpu_report.main()

    assert run("one") == 1
    assert run("two") == 1
    assert "Failed: its work." in (tmp_path / "out" / "report.md").read_text()
    status[0] = 0
    assert run("one") == 0
    assert "Everything passed." in (tmp_path / "out" / "report.md").read_text()


def test_nothing_follows_a_build_that_fails(gpu_report, tmp_path, monkeypatch):
    def broken(report, seconds):
        report.failed.append("build")

    steps = {"build": (broken, 1), "tests": (lambda report, seconds: pytest.fail("ran"), 1)}
    monkeypatch.setattr(gpu_report, "STEPS", steps)
    monkeypatch.setattr(gpu_report, "NEEDED", {})
    monkeypatch.setattr(sys, "argv", ["gpu_report.py", str(tmp_path / "out"), "--steps", "build,tests"])
    assert gpu_report.main() == 1
    assert "Failed: build." in (tmp_path / "out" / "report.md").read_text()


def test_a_step_that_fails_is_remembered_and_named(gpu_report, report, capsys):
    report.run("good", [sys.executable, "-c", "print('fine')"], 30)
    report.run("bad", [sys.executable, "-c", "import sys; print('broken'); sys.exit(3)"], 30)
    report.run("optional", [sys.executable, "-c", "import sys; sys.exit(1)"], 30, required=False)
    assert report.failed == ["bad"]
    assert "exit status 3" in capsys.readouterr().out
    text = gpu_report.write(report, "Simulated GPU", "").read_text()
    assert "Failed: bad." in text


@pytest.mark.medium
def test_a_step_that_takes_too_long_is_ended(report):
    output = report.run("endless", [sys.executable, "-uc", "print('begun')\nwhile True: pass"], 1)
    assert "begun" in output
    assert report.failed == ["endless"]


def test_a_real_cards_report_goes_into_the_repository_by_its_name(gpu_report, report, tmp_path, monkeypatch):
    (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    earlier = tmp_path / "benchmarks" / "results" / "earlier.md"
    earlier.write_text("of another day")
    os.utime(earlier, (1, 1))
    monkeypatch.setattr(gpu_report, "ROOT", tmp_path)
    report.simulated = False
    report.folder = tmp_path / "out"
    (report.folder / "recordings").mkdir(parents=True)
    (report.folder / "recordings" / "cuda_step.gpurec").write_text("recorded")
    (report.folder / "recordings" / "cuda_step.pb").write_text("the same, in many bytes")
    (report.folder / "questions").mkdir()
    (report.folder / "questions" / "questions.md").write_text("answers")
    path = gpu_report.write(report, "NVIDIA H200 (141 GB)", "")
    assert path == tmp_path / "benchmarks" / "results" / "nvidia-h200-141-gb-gpu.md"
    assert path.read_text() == (report.folder / "report.md").read_text()
    kept = tmp_path / "tests" / "data" / "gpu" / "nvidia-h200-141-gb" / "cuda_step.gpurec"
    assert kept.read_text() == "recorded"
    assert list(kept.parent.iterdir()) == [kept]
    for _ in range(2):  # the archive may lie in the folder that it has
        gpu_report.pack(report, report.folder / "gpu.tgz")
    with tarfile.open(report.folder / "gpu.tgz") as archive:
        assert {member.name for member in archive if member.isfile()} == {
            "out/report.md", "out/recordings/cuda_step.gpurec", "out/recordings/cuda_step.pb",
            "out/questions/questions.md", "benchmarks/results/nvidia-h200-141-gb-questions.md",
            str(path.relative_to(tmp_path)), str(kept.relative_to(tmp_path)),
        }  # fmt: skip


def test_every_module_of_gpu_tests_runs_in_one_step(gpu_report, root):
    tests = gpu_report.gpu_tests
    modules = [*tests.CORE, *tests.further_modules(), *tests.FRAMEWORKS]
    named = [file for each in dict.fromkeys(module.subject for module in modules) for file in tests.Module(each).files]
    assert sorted(named) == sorted((root / "tests" / "gpu").glob("test_*.py"))
    assert modules[0].subject == "records"
    simulated = tests.for_simulator(modules)
    assert len(simulated) == tests.TOGETHER
    assert sorted(file for module in simulated for file in module.files) == sorted(named)


def test_the_calls_on_a_lent_machine_fit_into_its_time_and_are_those_that_contributors_are_told(gpu_report, root):
    limits = {name: sum(gpu_report.STEPS[step][1] for step in steps) for name, (_, steps) in gpu_report.CALLS.items()}
    assert {name: seconds for name, (seconds, _) in gpu_report.CALLS.items()} == {"first": 530, "second": 265}
    assert limits["first"] <= 530 - 10  # the packages and the machine are asked for before
    assert limits["second"] <= 265 - 5
    order = [step for _, steps in gpu_report.CALLS.values() for step in steps]
    assert order == list(gpu_report.STEPS)[: len(order)]
    assert order[:4] == ["build", "peers", "floors", "tests"]
    assert set(gpu_report.steps_of_call("second")) == set(gpu_report.STEPS) - set(gpu_report.CALLS["first"][1])
    assert gpu_report.steps_of_call("first") == list(gpu_report.CALLS["first"][1])
    page = (root / "CONTRIBUTING.md").read_text()
    pattern = r"^\$ python3 scripts/gpu_report.py out/gpu --call (\w+) --pack \"\$OUT/gpu"
    assert re.findall(pattern, page, re.MULTILINE) == list(gpu_report.CALLS)
    for name, (seconds, _) in gpu_report.CALLS.items():
        assert re.search(rf"--call {name} .*# at most {seconds} s", page)


def test_a_call_runs_its_steps_and_the_last_one_those_for_which_time_is_left(gpu_report, tmp_path, monkeypatch):
    def step(title):
        return lambda report, seconds: report.add_section(title, f"{seconds:.0f} s of {report.seconds:.0f}")

    steps = {name: (step(name.title()), 20) for name in ("one", "two", "three")}
    monkeypatch.setattr(gpu_report, "STEPS", steps)
    monkeypatch.setattr(gpu_report, "CALLS", {"first": (100, ("one",)), "second": (50, ("two",))})
    monkeypatch.setattr(gpu_report, "NEEDED", {})
    monkeypatch.setattr(gpu_report, "machine", lambda report: ("Simulated GPU", "| it |"))
    gpu_report.SITE.mkdir()

    def run(call, *options):
        arguments = [str(tmp_path / "out"), "--simulated", "--call", call, *options]
        monkeypatch.setattr(sys, "argv", ["gpu_report.py", *arguments])
        assert gpu_report.main() == 0
        return (tmp_path / "out" / "report.md").read_text()

    assert re.findall("^## (.*)", run("first"), re.MULTILINE) == ["One"]
    text = run("second")
    assert "## One\n\n100 s of 100" in text
    assert "## Two\n\n30 s of 50" in text
    assert "## Three\n\n50 s of 50" in text
    assert "## Three\n\n90 s of 90" in run("second", "--seconds", "90")


def test_a_step_has_the_time_that_those_after_it_leave(gpu_report, report, monkeypatch):
    monkeypatch.setattr(gpu_report, "STEPS", {"one": (None, 50), "two": (None, 30), "three": (None, 20)})
    monkeypatch.setattr(report, "left", lambda: 120)
    assert gpu_report.step_seconds(report, ["one", "two", "three"], 0) == 70
    monkeypatch.setattr(report, "left", lambda: 60)
    assert gpu_report.step_seconds(report, ["one", "two", "three"], 0) == 50


def test_the_archive_is_whole_after_every_step_and_while_it_is_written(gpu_report, tmp_path, monkeypatch):
    archive = tmp_path / "gpu.tgz"
    packed = []

    def sections():
        with tarfile.open(archive) as file:
            return re.findall("^## (.*)", file.extractfile("out/report.md").read().decode(), re.MULTILINE)

    def step(title):
        def run(report, seconds):
            packed.append(sections() if archive.exists() else None)
            report.add_section(title, "done")

        return run

    monkeypatch.setattr(gpu_report, "STEPS", {"one": (step("One"), 20), "two": (step("Two"), 20)})
    monkeypatch.setattr(gpu_report, "NEEDED", {})
    monkeypatch.setattr(gpu_report, "machine", lambda report: ("Simulated GPU", "| it |"))
    gpu_report.SITE.mkdir()
    monkeypatch.setattr(sys, "argv", ["gpu_report.py", str(tmp_path / "out"), "--simulated", "--pack", str(archive)])
    assert gpu_report.main() == 0
    assert packed == [None, ["One"]]
    assert sections() == ["One", "Two"]

    class Killed(BaseException):
        pass

    def kill(*arguments, **options):
        raise Killed

    monkeypatch.setattr(tarfile.TarFile, "add", kill)
    with pytest.raises(Killed):
        gpu_report.main()
    assert sections() == ["One", "Two"]


def test_libcupti_is_searched_for_as_sessions_do(root):
    """Without the folders of packages, the search would find none of NVIDIA's wheels."""
    files = [path for folder in ("scripts", "benchmarks", "tests/gpu") for path in (root / folder).rglob("*.py")]
    assert [path.name for path in files if "_native.probe()" in path.read_text()] == []


@pytest.fixture
def carried_libcuptis(gpu_report, tmp_path, monkeypatch):
    """Carries libraries that only have a version."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    monkeypatch.setattr(gpu_report, "ROOT", tmp_path)

    def carry(*versions):
        for version in versions:
            folder = tmp_path / ".libcupti" / str(version)
            folder.mkdir(parents=True)
            source = f"int cuptiGetVersion(unsigned *version) {{ *version = {version}; return 0; }}"
            command = [compiler, "-shared", "-fPIC", "-x", "c", "-o", str(folder / "libcupti.so.13"), "-"]
            subprocess.run(command, input=source, text=True, check=True)

    return carry


@pytest.mark.slow
def test_a_defective_libcupti_is_replaced_for_the_whole_run(gpu_report, report, carried_libcuptis, tmp_path, capsys):
    found = {"cupti_path": "/wheels/libcupti.so.13", "cupti_api_version": 130000, "cupti_reason": "found first"}
    gpu_report.choose_libcupti(report, found)
    assert report.sections[-1][1].endswith("None is carried that could be used instead.")
    carried_libcuptis(130000, 130001, 130200)
    (tmp_path / ".libcupti" / "libcupti.so.12").write_bytes(b"no library")
    gpu_report.choose_libcupti(report, found)
    chosen = str(tmp_path / ".libcupti" / "130001" / "libcupti.so.13")
    assert report.environment["COLLECTOR_LIBCUPTI"] == chosen
    searched = gpu_report.Path(report.environment["LD_LIBRARY_PATH"].split(os.pathsep)[0])
    assert (searched / "libcupti.so.13").samefile(chosen)  # what PyTorch loads by name
    assert "/wheels/libcupti.so.13, cuptiGetVersion 130000 (found first): " in report.sections[-1][1]
    assert "All later steps use the carried libcupti.so.13 with version 130001 instead." in capsys.readouterr().out
    del report.environment["COLLECTOR_LIBCUPTI"]
    gpu_report.choose_libcupti(report, found | {"cupti_api_version": 130001})
    assert "COLLECTOR_LIBCUPTI" not in report.environment
    assert report.sections[-1] == ("libcupti", "/wheels/libcupti.so.13, cuptiGetVersion 130001 (found first)")


@pytest.mark.slow
def test_failures_of_graphs_are_repeated_with_a_mended_libcupti(gpu_report, report, carried_libcuptis, tmp_path):
    def outcomes(subject, outcome):
        lines = [{"test": "test_it", "outcome": outcome, "text": ""}]
        return gpu_report.Outcomes(gpu_report.Module(subject), lines=lines)

    assert gpu_report.newer_libcupti(report, outcomes("graphs", "failed")) is None  # none is carried
    carried_libcuptis(130100, 130101, 130300)
    label, environment = gpu_report.newer_libcupti(report, outcomes("graphs", "failed"))
    assert label == "with libcupti 130101"
    assert environment == {"COLLECTOR_LIBCUPTI": str(tmp_path / ".libcupti" / "130101" / "libcupti.so.13")}
    assert gpu_report.newer_libcupti(report, outcomes("graphs", "passed")) is None
    assert gpu_report.newer_libcupti(report, outcomes("records", "failed")) is None


@pytest.mark.medium
def test_missing_packages_are_named_with_what_is_skipped_and_fail_on_a_card(load_script, report, monkeypatch):
    module = load_script("gpu_report")
    there = {"pytest": ("pytest", "everything"), "no_such_module.part": ("no-such", "the tests of nothing")}
    monkeypatch.setattr(module, "PACKAGES", there | {"no_such_option": ("no-option", "a little")})
    monkeypatch.setattr(module, "OPTIONAL", {"no-option"})
    module.list_packages(report)
    title, text = report.sections[-1]
    assert title == "Packages"
    assert f"| pytest | pytest {metadata.version('pytest')} |" in text
    assert "| no-such | **missing**: skips the tests of nothing |" in text
    assert "| no-option | **missing**: skips a little |" in text
    assert report.failed == []
    report.simulated = False
    module.list_packages(report)
    assert report.failed == ["packages"]
    del there["no_such_module.part"]
    monkeypatch.setattr(module, "PACKAGES", there | {"no_such_option": ("no-option", "a little")})
    module.list_packages(report)
    assert report.failed == []


def test_all_that_the_package_needs_is_asked_for(gpu_report):
    needed = metadata.requires("cupti-collector")
    names = {re.match(r"[\w-]+", each)[0] for each in needed if not re.search("extra|python_version", each)}
    assert names
    assert names <= set(gpu_report.NEEDED.values())


def test_what_is_missing_and_cannot_be_fetched_is_named(gpu_report, monkeypatch, tmp_path):
    monkeypatch.setattr(gpu_report, "NEEDED", {"json": "json", "no_such_module": "no-such-distribution"})
    monkeypatch.setattr(gpu_report, "ROOT", tmp_path)

    def offline(command, **_):
        raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(gpu_report.subprocess, "run", offline)
    with pytest.raises(SystemExit, match=r"no-such-distribution.*COLLECTOR_WHEELS"):
        gpu_report.prepare()


@pytest.mark.medium
def test_wheels_handed_over_are_used_without_a_network(gpu_report, monkeypatch, tmp_path):
    wheels = tmp_path / "given"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "handed_over-1.0-py3-none-any.whl", "w") as wheel:
        info = "handed_over-1.0.dist-info"
        wheel.writestr("handed_over.py", "value = 42\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: handed-over\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", f"handed_over.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    monkeypatch.setenv("COLLECTOR_WHEELS", str(wheels))
    monkeypatch.setattr(gpu_report, "NEEDED", {"handed_over": "handed-over"})
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert gpu_report.prepare() == sys.executable
    assert (gpu_report.WHEELS_SITE / "handed_over.py").exists()
