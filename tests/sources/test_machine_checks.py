"""What `collector info` checks, on folders that look like machines with one trouble each."""

from __future__ import annotations

from pathlib import Path

import pytest

from collector.sources import machine_checks as checked
from collector.sources.machine_checks import FAILED, NOTE, OK, machine_checks
from tests.support.file_permissions import permissions_hold

NOTHING = {"available": False, "cause": "no driver", "remedy": "Install it"}


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with these files; returns its checks by name."""
    monkeypatch.setattr(checked, "cupti_candidates", list)

    def check(files=None, environment=None, found=NOTHING):
        for name, text in (files or {}).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return {each.name: each for each in machine_checks(found, environment=environment or {}, root=tmp_path)}

    return check


def capabilities(number: int) -> dict[str, str]:
    return {
        "proc/driver/nvidia/params": "RmMsg: \nRmProfilingAdminOnly: 1\n",
        "proc/self/status": f"Name:\tpython\nCapEff:\t{number:016x}\n",
    }


def test_profiling_for_administrators(machine):
    check = machine(capabilities(0))["permission"]
    assert check.state == NOTE
    assert "NVreg_RestrictProfilingToAdminUsers=0" in check.remedy


def test_an_administrator_may_profile(machine):
    assert machine(capabilities(1 << 21))["permission"].state == OK


def test_profiling_for_everybody(machine):
    assert "permission" not in machine({"proc/driver/nvidia/params": "RmProfilingAdminOnly: 0\n"})


@pytest.mark.parametrize("mark", [".dockerenv", "run/.containerenv"])
def test_a_container_without_a_gpu(machine, mark):
    check = machine({mark: ""})["container"]
    assert (check.state, check.remedy) == (FAILED, "Start it with --gpus all")


def test_a_container_without_libcuda(machine):
    files = {".dockerenv": "", "dev/nvidiactl": ""}
    check = machine(files, {"NVIDIA_DRIVER_CAPABILITIES": "utility,graphics"})["container"]
    assert check.state == FAILED
    assert "compute" in check.remedy
    for given in ("all", "compute,utility", ""):
        assert machine(files, {"NVIDIA_DRIVER_CAPABILITIES": given})["container"].state == OK


def test_a_machine_that_is_no_container(machine):
    assert "container" not in machine({"dev/nvidiactl": ""})


def test_another_tool_is_named(machine):
    path = "/opt/nvidia/nsight-systems/target-linux-x64/libToolsInjection64.so"
    check = machine(environment={"CUDA_INJECTION64_PATH": path})["other tools"]
    assert check.state == FAILED
    assert f"names {path}, of Nsight Systems" in check.text
    unknown = machine(environment={"CUDA_INJECTION64_PATH": "/opt/other.so"})["other tools"]
    assert "names /opt/other.so: CUPTI serves one tool" in unknown.text


def test_no_libcupti_anywhere(machine):
    check = machine()["libcupti found"]
    assert check.state == FAILED
    assert "pip install nvidia-cuda-cupti" in check.remedy


def test_each_libcupti_is_listed_once_and_the_one_taken_is_marked(machine, tmp_path, monkeypatch):
    real = tmp_path / "libcupti.so.2025.4.1"
    real.write_text("")
    (tmp_path / "libcupti.so.13").symlink_to(real.name)
    (tmp_path / "again").symlink_to(".")
    other = tmp_path / "libcupti.so.12"
    other.write_text("")
    paths = [tmp_path / "libcupti.so.13", tmp_path / "again" / "libcupti.so.13", other]
    monkeypatch.setattr(checked, "cupti_candidates", lambda: list(map(str, paths)))
    found = {"available": True, "cupti_path": str(real)}
    lines = [
        each.text for each in machine_checks(found, environment={}, root=tmp_path) if each.name == "libcupti found"
    ]
    assert lines == [f"{paths[0]} (libcupti.so.2025.4.1, taken)", str(other)]


def test_a_named_libcupti_that_is_not_there(machine):
    check = machine(environment={"COLLECTOR_LIBCUPTI": "/opt/none.so"})["COLLECTOR_LIBCUPTI"]
    assert check.state == FAILED
    assert "/opt/none.so" in check.text


def test_device_nodes_of_another_group(machine, tmp_path):
    machine({"dev/nvidiactl": ""})
    (tmp_path / "dev" / "nvidiactl").chmod(0)
    with permissions_hold():
        assert machine()["device nodes"].state == FAILED


def test_extras_are_those_of_the_distribution(machine, monkeypatch):
    monkeypatch.setattr(
        checked.metadata,
        "requires",
        lambda _: [
            "numpy>=1.23",
            'not-there>=1; extra == "one"',
            "pytest>=8; sys_platform == 'linux' and extra == 'two'",
            'ruff; extra == "dev"',
        ],
    )
    checks = machine()
    assert checks["extra one"] == (
        "extra one", NOTE, "without not-there", "Run: pip install 'cupti-collector[one]'",
    )  # fmt: skip
    assert (checks["extra two"].state, checks["extra two"].text) == (OK, "pytest")
    assert "extra dev" not in checks


def test_the_files_among_which_libcupti_is_searched(tmp_path, monkeypatch):
    folder = tmp_path / "extras" / "CUPTI" / "lib64"
    folder.mkdir(parents=True)
    (folder / "libcupti.so.12").write_text("")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert str(folder / "libcupti.so.12") in checked.cupti_candidates()
    assert all(Path(each).is_file() for each in checked.cupti_candidates())
