"""What `collector info` checks, on folders that look like machines with one trouble each."""

from __future__ import annotations

from pathlib import Path

import pytest

from collector.sources import machine_checks as checked
from collector.sources.machine_checks import FAILED, NOTE, OK, WARNING, machine_checks
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
    assert "--cap-add SYS_ADMIN beside --gpus" in check.remedy


def test_an_administrator_may_profile(machine):
    assert machine(capabilities(1 << 21))["permission"].state == OK


def test_profiling_for_everybody(machine):
    assert "permission" not in machine({"proc/driver/nvidia/params": "RmProfilingAdminOnly: 0\n"})


@pytest.mark.parametrize("mark", [".dockerenv", "run/.containerenv"])
def test_a_container_without_a_gpu(machine, mark):
    check = machine({mark: ""})["container"]
    assert check.state == FAILED
    assert check.remedy.startswith("Start it with --gpus all")
    assert "--cap-add SYS_ADMIN" in check.remedy
    assert machine({mark: ""}, found={"available": True, "simulated": True})["container"].state == WARNING


@pytest.mark.parametrize("found", [{"available": True}, {"available": True, "simulated": False}])
def test_a_container_in_which_tracing_works_has_a_gpu(machine, found):
    environment = {"NVIDIA_DRIVER_CAPABILITIES": "graphics"}
    assert machine({".dockerenv": ""}, environment, found)["container"][1:3] == (OK, "it has a GPU")


def test_a_container_of_wsl_2_has_a_gpu(machine):
    assert machine({".dockerenv": "", "dev/dxg": ""})["container"].state == OK


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


def test_a_libcupti_that_was_passed_over_has_the_cause(machine, tmp_path, monkeypatch):
    newer, older = tmp_path / "libcupti.so.13", tmp_path / "libcupti.so.12"
    monkeypatch.setattr(checked, "cupti_candidates", lambda: [str(newer), str(older)])
    found = {"available": True, "cupti_path": str(older), "cupti_passed_over": [(str(newer), "it crashed")]}
    lines = [each.text for each in machine_checks(found, environment={}, root=tmp_path) if "found" in each.name]
    assert lines == [f"{newer} (passed over: it crashed)", f"{older} (taken)"]


@pytest.mark.parametrize("variable", ["COLLECTOR_LIBCUPTI", "COLLECTOR_LIBCUDA"])
def test_a_named_library_that_is_none(machine, tmp_path, variable):
    text, library, folder, loop = (tmp_path / name for name in ("text.so", "library.so", "folder", "loop"))
    text.write_text("text")
    library.write_bytes(b"\x7fELF\x02")
    folder.mkdir()
    loop.symlink_to(loop)

    def told(path: object, found=NOTHING) -> tuple[str, str] | None:
        check = machine(environment={variable: str(path)}, found=found).get(variable)
        return None if check is None else (check.state, check.text)

    assert told("/opt/none.so") == (FAILED, "names /opt/none.so, which is not there")
    assert told(folder) == (FAILED, f"names {folder}, which is not a file")
    assert told(text) == (FAILED, f"names {text}, which is not a library")
    assert told(loop) == (FAILED, f"names {loop}, which cannot be read (Too many levels of symbolic links)")
    assert told("/" + "x" * 5000)[1].endswith("which cannot be read (File name too long)")
    assert told(library) is None
    assert told("libcupti.so.13") is None  # the dynamic loader searches it
    assert told("/opt/none.so", {"available": True})[0] == WARNING


def test_nothing_failed_where_tracing_works(machine):
    files = {".dockerenv": ""}
    environment = {"CUDA_INJECTION64_PATH": "/opt/other.so", "COLLECTOR_LIBCUPTI": "/opt/none.so"}
    checks = machine(files, environment, {"available": True, "simulated": True})
    assert {name for name, each in checks.items() if each.state == WARNING} == {
        "other tools", "COLLECTOR_LIBCUPTI", "container", "libcupti found",
    }  # fmt: skip
    assert FAILED not in {each.state for each in checks.values()}


def test_the_driver_is_always_among_the_checks(machine):
    missing = {"available": False, "error": "driver-not-found", "cause": "no driver", "remedy": "Install it"}
    assert machine(found=missing)["driver"] == ("driver", FAILED, "no usable driver", "Install it")
    assert machine(found=NOTHING)["driver"].state == NOTE
    assert machine(found={"available": True, "driver_version": 13010})["driver"][1:3] == (OK, "CUDA 13.1")


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
