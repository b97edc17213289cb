"""`make gpu` with nothing but its build left out: every step, tried out on the simulator."""

import json
import subprocess
import sys
import zipfile

import pytest


@pytest.fixture
def gpu_report(load_script, tmp_path, monkeypatch):
    module = load_script("gpu_report")
    for name in ("BUILD", "SITE", "WHEELS_SITE", "RUN"):
        monkeypatch.setattr(module, name, tmp_path / name.lower())
    return module


@pytest.fixture
def report(gpu_report, tmp_path):
    gpu_report.RUN.mkdir()
    return gpu_report.Report(tmp_path, {}, sys.executable, True)


@pytest.mark.slow
def test_every_step_runs_on_the_simulator(gpu_report, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "out"
    monkeypatch.setattr(gpu_report, "NEEDED", {})
    monkeypatch.setattr(gpu_report, "build", lambda report: True)
    monkeypatch.setattr(sys, "argv", ["gpu_report.py", str(folder), "--simulated"])
    status = gpu_report.main()
    printed = capsys.readouterr().out
    assert status == 0, printed
    assert {path.name for path in folder.iterdir()} == {
        "report.md", "tests.log", "step.gpurec", "step.pb", "demo.json", "decode.json", "overhead.json",
    }  # fmt: skip
    text = (folder / "report.md").read_text()
    assert "Everything passed." in text
    for title in ("Tests", "Decoding and callbacks", "What tracing costs", "A recorded step"):
        assert f"## {title}" in text
    assert "passed" in (folder / "tests.log").read_text()
    rows = json.loads((folder / "overhead.json").read_text())
    assert not [row for row in rows if "failed" in row]
    assert {row["kernels"] for row in rows if row["name"].startswith("collector")} == {2000}


def test_a_step_that_fails_is_remembered_and_named(gpu_report, report, capsys):
    report.run("good", [sys.executable, "-c", "print('fine')"], 30)
    report.run("bad", [sys.executable, "-c", "import sys; print('broken'); sys.exit(3)"], 30)
    report.run("optional", [sys.executable, "-c", "import sys; sys.exit(1)"], 30, required=False)
    assert report.failed == ["bad"]
    assert "exit status 3" in capsys.readouterr().out
    text = gpu_report.write(report, "Simulated GPU", "").read_text()
    assert "Failed: bad." in text


def test_a_step_that_takes_too_long_is_ended(report):
    output = report.run("endless", [sys.executable, "-uc", "print('begun')\nwhile True: pass"], 1)
    assert "begun" in output
    assert report.failed == ["endless"]


def test_a_real_cards_report_goes_into_the_repository_by_its_name(gpu_report, report, tmp_path, monkeypatch):
    (tmp_path / "benchmarks").mkdir()
    monkeypatch.setattr(gpu_report, "ROOT", tmp_path)
    report.simulated = False
    path = gpu_report.write(report, "NVIDIA H200 (141 GB)", "")
    assert path == tmp_path / "benchmarks" / "results" / "nvidia-h200-141-gb.md"
    assert path.read_text() == (tmp_path / "report.md").read_text()


def test_what_is_missing_and_cannot_be_fetched_is_named(gpu_report, monkeypatch, tmp_path):
    monkeypatch.setattr(gpu_report, "NEEDED", {"json": "json", "no_such_module": "no-such-distribution"})
    monkeypatch.setattr(gpu_report, "ROOT", tmp_path)

    def offline(command, **_):
        raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(gpu_report.subprocess, "run", offline)
    with pytest.raises(SystemExit, match=r"no-such-distribution.*COLLECTOR_WHEELS"):
        gpu_report.prepare()


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
