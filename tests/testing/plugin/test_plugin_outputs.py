"""The output of the plugin (reports, traces, snapshots, JUnit properties), and errors while it is written."""

import json
import shlex
import sys
import xml.etree.ElementTree as ElementTree
from fnmatch import fnmatch
from pathlib import Path

import pytest
from plugin_runs import INI, report_of, run

import collector
from collector.testing.plugin import run_report as report_module

pytestmark = pytest.mark.simulator

pytest_plugins = ["pytester"]

MIXED = """
import pytest

def launch(gpu, microseconds):
    gpu.launch("sgemm", duration_ns=1000 * microseconds)
    gpu.memcpy("DtoH", 128)

@pytest.mark.gpu_limits(kernels=5)
def test_short(simulated_gpu):
    launch(simulated_gpu, 1)

def test_long(simulated_gpu):
    launch(simulated_gpu, 100)

def test_fails(simulated_gpu):
    launch(simulated_gpu, 5)
    assert False

@pytest.mark.parametrize("what", ["a/b", "../../up", "\\u65e5\\u672c", "x" * 300])
def test_named(simulated_gpu, what):
    launch(simulated_gpu, 2)

@pytest.mark.gpu
def test_needs_a_real_one():
    pass

@pytest.mark.xfail
def test_expected(simulated_gpu):
    launch(simulated_gpu, 3)
    assert False

@pytest.fixture
def broken(simulated_gpu):
    launch(simulated_gpu, 4)
    raise RuntimeError("no")

def test_error(broken):
    pass

def test_cpu():
    pass
"""


@pytest.mark.medium
def test_the_report_follows_its_schema(pytester):
    run(pytester, MIXED, "--gpu-trace=traces", "--gpu-report=out.json", "--gpu-simulate=2").assert_outcomes(
        passed=7, failed=1, skipped=1, xfailed=1, errors=1
    )
    report, tests = report_of(pytester)
    schema = json.loads(Path(report_module.__file__).with_name("report.schema.json").read_text())
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(report, schema)
    assert [device["name"] for device in report["devices"]] == ["Simulated GPU"] * 2
    assert report["totals"]["tests"] == 11
    assert report["totals"]["kernels"] == 9
    assert {name: test["outcome"] for name, test in tests.items() if test["outcome"] != "passed"} == {
        "test_fails": "failed",
        "test_needs_a_real_one": "skipped",
        "test_expected": "xfailed",
        "test_error": "error",
    }
    assert "needs a real GPU" in tests["test_needs_a_real_one"]["skipped_because"]
    call = tests["test_long"]["phases"]["call"]
    assert call["kernels"] == [{"name": "sgemm", "count": 1, "total_ns": 100_000}]
    assert call["figures"]["memcpy_dtoh_bytes"] == 128


@pytest.mark.medium
def test_outcomes_are_those_of_pytest_whatever_phase_has_them(pytester):
    source = """
import pytest

@pytest.fixture
def refuses(simulated_gpu):
    simulated_gpu.launch("sgemm")
    pytest.xfail("not yet")

@pytest.fixture
def skips_at_the_end():
    yield
    pytest.skip("late")

@pytest.fixture
def raises_at_the_end():
    yield
    raise ValueError

@pytest.mark.xfail(run=False, reason="hangs")
def test_not_run(simulated_gpu): pass

def test_refused(refuses): pass

def test_fails(simulated_gpu, skips_at_the_end):
    assert False

@pytest.mark.xfail(strict=True)
def test_unexpected(simulated_gpu, raises_at_the_end): pass

def test_skips(simulated_gpu):
    pytest.skip("now")
"""
    run(pytester, source, "--gpu-report=out.json", "--gpu-simulate")
    _, tests = report_of(pytester)
    assert {name: (test["outcome"], test["skipped_because"]) for name, test in tests.items()} == {
        "test_not_run": ("xfailed", None),
        "test_refused": ("xfailed", None),
        "test_fails": ("failed", None),
        "test_unexpected": ("failed", None),
        "test_skips": ("skipped", "now"),
    }


@pytest.mark.medium
@pytest.mark.parametrize("where", ["setup", "call", "teardown"])
def test_a_test_that_was_interrupted_is_not_reported_as_passed(pytester, where):
    source = f"""
import pytest

def ends(phase):
    if phase == {where!r}:
        pytest.exit("enough")

@pytest.fixture
def parts(simulated_gpu):
    ends("setup")
    yield
    ends("teardown")

def test_before(simulated_gpu): pass

def test_ends(parts):
    ends("call")

def test_after(simulated_gpu): pass
"""
    result = run(pytester, source, "--gpu-report=out.json", "--gpu-simulate")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    _, tests = report_of(pytester)
    of_the_call = {"setup": {}, "call": {"test_ends": "interrupted"}, "teardown": {"test_ends": "passed"}}
    assert {name: test["outcome"] for name, test in tests.items()} == {"test_before": "passed", **of_the_call[where]}


@pytest.mark.medium
@pytest.mark.skipif(not hasattr(pytest, "Subtests"), reason="subtests are a part of pytest 9")
def test_a_subtest_that_is_skipped_skips_no_test(pytester):
    source = """
import pytest

@pytest.mark.parametrize("outcome", ["skip", "xfail", "fail"])
def test_parts(simulated_gpu, subtests, outcome):
    for part in range(2):
        with subtests.test(part=part):
            simulated_gpu.launch("sgemm")
            if part:
                getattr(pytest, outcome)("a part")
"""
    run(pytester, source, "--gpu-report=out.json", "--gpu-simulate")
    _, tests = report_of(pytester)
    assert {name: (test["outcome"], test["skipped_because"]) for name, test in tests.items()} == {
        "test_parts[skip]": ("passed", None),
        "test_parts[xfail]": ("passed", None),
        "test_parts[fail]": ("failed", None),
    }
    assert {test["phases"]["call"]["figures"]["kernels"] for test in tests.values()} == {2}


@pytest.mark.medium
@pytest.mark.parametrize(
    ("keep", "kept"),
    [
        ("failed", {"test_fails", "test_error"}),
        ("slow:2", {"test_long", "test_fails"}),
        ("always", {"test_short", "test_long", "test_fails", "test_expected", "test_error", "test_named"}),
    ],
)
def test_traces_are_kept_by_rule_under_safe_names(pytester, keep, kept):
    run(pytester, MIXED, "--gpu-trace=traces", f"--gpu-trace-keep={keep}", "--gpu-report=out.json", "--gpu-simulate")
    _, tests = report_of(pytester)
    files = {name: test["trace"] for name, test in tests.items() if test["trace"]}
    assert {name.partition("[")[0] for name in files} == kept
    found = sorted((pytester.path / "traces").iterdir())
    assert [str(path) for path in found] == sorted(files.values())
    assert len(found) == (9 if keep == "always" else 2)
    for path in found:
        assert len(path.name) < 200
        assert path.name.isascii()
        events = json.loads(path.read_text())["traceEvents"]
        assert any(event.get("name", "").endswith("sgemm") for event in events), path


@pytest.mark.medium
def test_a_test_of_several_sessions_is_one_trace(pytester):
    source = """
def test_steps(simulated_gpu, gpu_trace):
    simulated_gpu.launch("first")
    with gpu_trace():
        simulated_gpu.launch("second", stream=9)
    simulated_gpu.launch("third")
"""
    run(pytester, source, "--gpu-trace=traces", "--gpu-trace-keep=always", "--gpu-simulate").assert_outcomes(passed=1)
    (path,) = (pytester.path / "traces").iterdir()
    text = path.read_text()
    assert all(name in text for name in ("first", "second", "third", "stream:9"))


@pytest.mark.medium
def test_the_trace_of_a_test_with_fixtures_has_the_names_of_every_phase(pytester):
    """Each phase numbers its own names: the setup has fewer than the call, whose names differ from those of both."""
    source = """
import collector
import pytest

@pytest.fixture
def weights(simulated_gpu):
    with collector.annotate("load"):
        simulated_gpu.launch("fill")
    yield
    simulated_gpu.launch("check")

def test_step(simulated_gpu, weights):
    for op in ("forward", "backward"):
        with collector.annotate(op):
            simulated_gpu.launch(f"{op}_kernel")
"""
    run(pytester, source, "--gpu-trace=traces", "--gpu-trace-keep=always", "--gpu-simulate").assert_outcomes(passed=1)
    (path,) = (pytester.path / "traces").iterdir()
    kernels = collector.load(path).recording.kernels
    assert list(zip(kernels.names(), kernels.annotations(), strict=True)) == [
        ("fill", "load"), ("forward_kernel", "forward"), ("backward_kernel", "backward"), ("check", ""),
    ]  # fmt: skip
    assert set(kernels.stream_id.tolist()) == {7}
    events = json.loads(path.read_text())["traceEvents"]
    assert not [
        event for event in events if event.get("args", {}).get("kernel", event.get("name")) != event.get("name")
    ]


@pytest.mark.medium
def test_junit_has_the_figures_as_properties(pytester):
    run(pytester, MIXED, "--gpu-trace", "--gpu-simulate", "--junitxml=junit.xml")
    cases = {case.get("name"): case for case in ElementTree.parse(pytester.path / "junit.xml").iter("testcase")}
    properties = {each.get("name"): each.get("value") for each in cases["test_long"].iter("property")}
    assert properties["gpu_time_ns"] == str(100_000 + 1_006)  # the copy: 1 us and 20 bytes per ns
    assert (properties["kernels"], properties["memcpy_dtoh_bytes"], properties["streams"]) == ("1", "128", "1")
    assert not list(cases["test_needs_a_real_one"].iter("property"))


@pytest.mark.medium
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--gpu-trace=file/traces"],
            "traces cannot be kept: cannot write to the folder *file/traces: Not a *",
        ),
        (["--gpu-report=file/out.json"], "the GPU report cannot be written: */file is not a folder"),
        (["--gpu-trace=/dev/full/x"], "traces cannot be kept: cannot write to the folder /dev/full/x: *"),
    ],
)
def test_where_nothing_can_be_written_tests_run_and_the_run_fails(pytester, arguments, message):
    (pytester.path / "file").write_text("")
    source = 'def test_good(simulated_gpu): simulated_gpu.launch("k")'
    result = run(pytester, source, *arguments, "--gpu-simulate")
    result.assert_outcomes(passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([message])
    assert result.stdout.str().count(message.partition(":")[0]) == 1


def told_once(result, text):
    """Whether one line has the text, apart from pytest's own summary, which repeats failures whole or cut off."""
    return sum(text in line and not line.startswith("FAILED ") for line in result.outlines) == 1


@pytest.mark.slow
def test_a_full_disk_is_one_error_however_many_traces_it_costs(pytester):
    pytester.makeconftest("""
import errno, pathlib
real = pathlib.Path.open
def no_space(self, mode="r", *args, **kwargs):
    if "x" in mode and "traces" in str(self):
        raise OSError(errno.ENOSPC, "No space left on device")
    return real(self, mode, *args, **kwargs)
pathlib.Path.open = no_space
""")
    source = """
import pytest
@pytest.mark.parametrize("n", range(3))
def test_good(simulated_gpu, n): simulated_gpu.launch("k")
"""
    result = run(pytester, source, "--gpu-trace=traces", "--gpu-trace-keep=always", "--gpu-simulate", apart=True)
    result.assert_outcomes(passed=3)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert told_once(result, "No space left on device")
    result.stdout.fnmatch_lines(["traces could not be kept in *traces: No space left on device (3 times)"])
    assert list((pytester.path / "traces").iterdir()) == []


FULL = """
def test_good(simulated_gpu, gpu_trace):
    with gpu_trace() as step:
        simulated_gpu.launch("k", count=50)
    if SNAPSHOT:
        step.assert_matches_snapshot()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "snapshot", "message"),
    [
        (["--gpu-trace=disk", "--gpu-trace-keep=always"], False, "traces could not be kept in */disk: No space left *"),
        (["--gpu-report=disk/out.json"], False, "the GPU report was not written: cannot write */out.json: No space *"),
        (
            ["--gpu-snapshot-update"],
            True,
            "E *Failed: cannot write *__gpu_snapshots__/*.json: No space left on device. Free space, *",
        ),
    ],
    ids=["traces", "report", "snapshot"],
)
def test_a_disk_that_is_really_full_is_one_clear_error(pytester, arguments, snapshot, message):
    in_a_namespace = "mount -t tmpfs -o size=4k tmpfs disk && (cat /dev/zero > disk/ballast 2>&-; true)"
    (pytester.path / "disk").mkdir()
    if pytester.run("unshare", "-rm", "sh", "-c", in_a_namespace).ret != 0:
        pytest.skip("a disk of its own cannot be mounted here")
    (pytester.path / "test_step.py").write_text(FULL.replace("SNAPSHOT", str(snapshot)))
    (pytester.path / "pytest.ini").write_text(INI)
    (pytester.path / "__gpu_snapshots__").symlink_to("disk")
    (pytester.path / "disk" / "test_step").mkdir()
    command = shlex.join([sys.executable, "-m", "pytest", "--gpu-simulate", *arguments])
    making = in_a_namespace.replace("&& (", "&& mkdir disk/test_step && (")
    result = pytester.run("unshare", "-rm", "sh", "-c", f"{making}; {command}")
    result.assert_outcomes(passed=not snapshot, failed=snapshot)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([message])
    assert told_once(result, "No space left on device")


SNAPSHOT = """
def train(gpu, grid=64, name="_Z9bias_reluPfi", extra=False):
    gpu.memcpy("HtoD", 4096, stream=STREAM)
    gpu.launch("sgemm", stream=STREAM, grid=(grid, 1, 1), block=(256, 1, 1))
    gpu.launch(name, stream=STREAM + 1)
    if extra:
        gpu.memset(16, stream=STREAM)

def test_step(simulated_gpu, gpu_trace):
    with gpu_trace() as step:
        train(simulated_gpu)
    step.assert_matches_snapshot()
    with gpu_trace() as step:
        train(simulated_gpu, extra=True)
    step.assert_matches_snapshot()
    with gpu_trace() as step:
        pass
    step.assert_matches_snapshot("nothing")
"""
GOLDEN = "__gpu_snapshots__/test_step"


@pytest.fixture
def snapshots(pytester):
    """A test with its three snapshots written."""
    result = run(pytester, SNAPSHOT.replace("STREAM", "7"), "--gpu-simulate", "--gpu-snapshot-update")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["snapshots were written, not compared (3 times)"])
    return pytester.path / GOLDEN


@pytest.mark.medium
@pytest.mark.parametrize("second", [1, 2])
def test_two_steps_of_one_name_have_to_be_alike(pytester, second):
    file = f"""
def test_step(simulated_gpu, gpu_trace):
    for launches in (1, {second}):
        with gpu_trace() as step:
            for _ in range(launches):
                simulated_gpu.launch("sgemm")
        step.assert_matches_snapshot("train")
"""
    result = run(pytester, file, "--gpu-simulate", "--gpu-snapshot-update")
    result.assert_outcomes(**{"passed" if second == 1 else "failed": 1})
    if second == 2:
        result.stdout.fnmatch_lines(["*the test has written this snapshot from another step*"])


@pytest.mark.medium
def test_a_snapshot_is_a_launch_list_that_people_can_read(pytester, snapshots):
    assert len(list(snapshots.iterdir())) == 3
    (first,) = (path for path in snapshots.iterdir() if path.name == "test_step.json")
    assert json.loads(first.read_text()) == {
        "format": "collector-gpu-snapshot",
        "version": 1,
        "devices": ["Simulated GPU"],
        "streams": [
            ["memcpy HtoD 4096 bytes", "sgemm grid=64,1,1 block=256,1,1"],
            ["bias_relu grid=1,1,1 block=128,1,1"],
        ],
    }


@pytest.mark.medium
def test_stream_ids_do_not_matter_but_shapes_names_and_order_do(pytester, snapshots):
    run(pytester, SNAPSHOT.replace("STREAM", "13"), "--gpu-simulate").assert_outcomes(passed=1)
    changed = run(pytester, SNAPSHOT.replace("STREAM", "7").replace("grid=64", "grid=65"), "--gpu-simulate")
    changed.assert_outcomes(failed=1)
    changed.stdout.fnmatch_lines(
        [
            "*the step does not match its snapshot *test_step.json",
            "*-  sgemm grid=64,1,1 block=256,1,1",
            "*+  sgemm grid=65,1,1 block=256,1,1",
            "*--gpu-snapshot-update accepts this run",
        ]
    )


@pytest.mark.medium
def test_a_snapshot_of_another_gpu_model_is_compared_by_names_only(pytester, snapshots):
    for path in snapshots.iterdir():
        path.write_text(path.read_text().replace('"Simulated GPU"', '"NVIDIA H200"'))
    other_shape = SNAPSHOT.replace("STREAM", "7").replace("grid=64", "grid=65")
    result = run(pytester, other_shape, "--gpu-simulate")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["the snapshot is from another GPU model (NVIDIA H200; here: Simulated GPU): only names, bytes and order *"]
    )
    other_name = SNAPSHOT.replace("STREAM", "7").replace("_Z9bias_reluPfi", "gelu")
    result = run(pytester, other_name, "--gpu-simulate")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the snapshot is from another GPU model*", "*-  bias_relu", "*+  gelu"])


@pytest.mark.medium
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.unlink(), "there is no snapshot *: run once with --gpu-snapshot-update to write it"),
        (lambda path: path.write_text("{"), "the snapshot * is damaged (Expecting property name*): restore it, or *"),
        (lambda path: path.write_bytes(b"\xff\xfe"), "the snapshot * is damaged (*utf-8*"),
        (lambda path: path.write_text("[]"), "the snapshot * is damaged (it is not a collector-gpu-snapshot)*"),
        (
            lambda path: path.write_text('{"format": "collector-gpu-snapshot", "version": 9}'),
            "the snapshot * is damaged (it has version 9, this one reads 1)*",
        ),
        (
            lambda path: path.write_text('{"format": "collector-gpu-snapshot", "version": 1, "streams": [[7]]}'),
            "the snapshot * is damaged (its devices or streams are not lists of text)*",
        ),
        (lambda path: (path.unlink(), path.mkdir()), "the snapshot * cannot be read: Is a directory"),
    ],
)
def test_a_snapshot_that_cannot_be_read_is_one_clear_failure(pytester, snapshots, damage, message):
    damage(snapshots / "test_step.json")
    result = run(pytester, None, "--gpu-simulate")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"E *Failed: {message}"])


@pytest.mark.medium
def test_a_snapshot_that_cannot_be_written_is_one_clear_failure(pytester):
    (pytester.path / "__gpu_snapshots__").write_text("")
    result = run(pytester, SNAPSHOT.replace("STREAM", "7"), "--gpu-simulate", "--gpu-snapshot-update")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *Failed: the snapshot * cannot be written: Not a directory"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--gpu-trace=t", "--gpu-trace-keep=never"],
            "ERROR: --gpu-trace-keep=never: it must be failed, *",
        ),
        (["--gpu-trace", "--gpu-trace-keep=always"], "ERROR: --gpu-trace-keep=always needs a folder*"),
        (["--gpu-simulate=none"], "ERROR: --gpu-simulate=none: it must be the number of devices*"),
    ],
)
def test_impossible_options_are_usage_errors(pytester, arguments, message):
    result = run(pytester, "def test_x(): pass", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


def test_the_ini_file_gives_defaults(pytester):
    ini = f"{INI}\ngpu_trace = traces\ngpu_trace_keep = always\ngpu_report = out.json\ngpu_simulate = 2\n"
    source = """
def test_two(gpu_devices, simulated_gpu):
    simulated_gpu.launch("k", device=1)
    assert gpu_devices == (0,)
"""
    run(pytester, source, ini=ini).assert_outcomes(passed=1)
    report, tests = report_of(pytester)
    assert len(report["devices"]) == 2
    assert Path(tests["test_two"]["trace"]).parent == pytester.path / "traces"


ON, OFF = ("true", "True", "yes", "on", "1"), ("false", "False", "no", "off", "0")
LAUNCHES = """
def test_launches(gpu_devices, simulated_gpu):
    simulated_gpu.launch("k")
"""
TABLE = "* that used the GPU, *"


@pytest.mark.parametrize("word", [*ON, *OFF])
def test_words_for_on_and_off_switch_the_trace(pytester, word):
    result = run(pytester, LAUNCHES, ini=f"{INI}\ngpu_simulate = on\ngpu_trace = {word}\n")
    result.assert_outcomes(passed=1)
    assert any(fnmatch(line, TABLE) for line in result.outlines) == (word in ON)
    assert not (pytester.path / word).exists()


@pytest.mark.parametrize("word", ["off", "False"])
@pytest.mark.parametrize("name", ["gpu_report", "gpu_html", "gpu_dataset", "gpu_record", "gpu_simulate", "gpu_leaks"])
def test_a_word_for_off_is_no_value_of_an_option(pytester, name, word):
    result = run(pytester, "def test_x(): pass", ini=f"{INI}\n{name} = {word}\n")
    result.assert_outcomes(passed=1)
    assert not any(fnmatch(line, TABLE) for line in result.outlines)
    assert not (pytester.path / word).exists()


@pytest.mark.parametrize("name", ["gpu_report", "gpu_html", "gpu_dataset", "gpu_record"])
def test_a_word_for_on_is_no_name_of_a_file(pytester, name):
    result = run(pytester, "def test_x(): pass", ini=f"{INI}\n{name} = true\n")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --{name.replace('_', '-')}=true: it must be the name of a f*"])


def test_the_command_line_switches_off_what_the_ini_file_switches_on(pytester):
    ini = f"{INI}\ngpu_simulate = yes\ngpu_trace = traces\ngpu_trace_keep = always\n"
    assert not any(fnmatch(line, TABLE) for line in run(pytester, LAUNCHES, "--gpu-trace=off", ini=ini).outlines)
    assert not (pytester.path / "traces").exists()


def test_a_path_after_an_option_without_value_is_a_path(pytester):
    (pytester.path / "deeper").mkdir()
    (pytester.path / "deeper" / "test_other.py").write_text("def test_other(): pass")
    result = run(pytester, "def test_x(): assert False", "--gpu-trace", "deeper")
    result.assert_outcomes(passed=1)
    run(pytester, None, "--gpu-simulate", "deeper").assert_outcomes(passed=1)


@pytest.mark.parametrize("option", ["--gpu-trace", "--gpu-simulate"])
def test_with_an_option_without_value_conftests_above_the_project_are_not_read(pytester, monkeypatch, option):
    (pytester.path / "conftest.py").write_text("raise RuntimeError('not of this project')")
    project = pytester.mkdir("project")
    (project / "pytest.ini").write_text(INI)
    (project / "test_step.py").write_text("def test_x(): pass")
    monkeypatch.chdir(project)
    pytester.runpytest_inprocess(option).assert_outcomes(passed=1)
