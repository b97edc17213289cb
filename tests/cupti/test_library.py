"""Finding and checking libcupti and libcuda: every way it can go wrong has a name, a cause and a remedy."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from collector import _native
from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator

KINDS = ["kernels", "memcpys", "memsets", "runtime_api", "driver_api", "external_correlations", "synchronizations"]


def failure_of_start(**options: object) -> _native.CaptureError:
    with pytest.raises(_native.CaptureError) as raised:
        _native.start({"kinds": KINDS, **options})
    assert not _native.is_active()
    return raised.value


def build(folder: Path, name: str, source: str) -> str:
    compiler = shutil.which("cc") or shutil.which("gcc")
    assert compiler, "these tests build small stand-in libraries with the C compiler that built the extension"
    library = folder / name
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)], input=source.encode(), check=True
    )
    return str(library)


REQUIRED = [
    "cuptiGetTimestamp",
    "cuptiSubscribe",
    "cuptiUnsubscribe",
    "cuptiActivityRegisterCallbacks",
    "cuptiActivityEnable",
    "cuptiActivityDisable",
    "cuptiActivityFlushAll",
    "cuptiActivityGetNextRecord",
]


def cupti_stand_in(api_version: int, *, functions: list[str] = REQUIRED) -> str:
    return f"unsigned cuptiGetVersion(unsigned *v) {{ *v = {api_version}u; return 0; }}\n" + "".join(
        f"unsigned {name}() {{ return 11; }}\n" for name in functions
    )


@pytest.fixture
def driver(tmp_path: Path) -> str:
    source = "int cuInit(unsigned f) { return 0; }\nint cuDriverGetVersion(int *v) { *v = 13010; return 0; }\n"
    return build(tmp_path, "libcuda_stand_in.so", source)


def test_a_driver_that_is_named_and_missing() -> None:
    error = failure_of_start(libcuda="/nowhere/libcuda.so.1")
    assert error.kind == "driver-not-found"
    assert "no NVIDIA driver" in error.cause
    assert "Correct COLLECTOR_LIBCUDA" in error.remedy


def test_toolkit_stub_is_not_a_driver() -> None:
    with SimulatedGpu() as gpu:
        gpu.inject("stub_driver")
        error = failure_of_start()
        assert error.kind == "driver-not-found"
        assert "stub" in error.cause
        assert "stubs" in error.remedy
        # The library must not even be asked for its version before a real driver is there.
        assert "cuptiGetVersion" not in gpu.statistics().calls


def test_driver_that_is_none() -> None:
    error = failure_of_start(libcuda="libm.so.6")
    assert error.kind == "driver-not-found"
    assert "is not an NVIDIA driver library" in error.cause


def test_missing_libcupti(driver: str) -> None:
    error = failure_of_start(libcuda=driver, libcupti="/nowhere/libcupti.so.13")
    assert error.kind == "cupti-not-found"
    assert "/nowhere/libcupti.so.13" in error.cause


def test_libcupti_that_is_none(driver: str) -> None:
    error = failure_of_start(libcuda=driver, libcupti="libm.so.6")
    assert error.kind == "cupti-not-found"
    assert "has no cuptiGetVersion" in error.cause


def test_libcupti_that_lacks_a_function(tmp_path: Path, driver: str) -> None:
    cupti = build(tmp_path, "libcupti_old.so", cupti_stand_in(130001, functions=REQUIRED[:-1]))
    error = failure_of_start(libcuda=driver, libcupti=cupti)
    assert error.kind == "cupti-not-found"
    assert "cuptiActivityGetNextRecord" in error.cause


def test_newer_libcupti_is_refused_unless_allowed(tmp_path: Path, driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cupti = build(tmp_path, "libcupti_newer.so", cupti_stand_in(140200))
    error = failure_of_start(libcuda=driver, libcupti=cupti)
    assert error.kind == "cupti-unusable"
    assert "CUDA 14.2, newer than this collector knows (13.5)" in error.cause
    assert "COLLECTOR_ALLOW_UNTESTED_CUPTI" in error.remedy
    monkeypatch.setenv("COLLECTOR_ALLOW_UNTESTED_CUPTI", "1")
    assert failure_of_start(libcuda=driver, libcupti=cupti).kind == "cupti-call"  # it got past the version


def test_older_libcupti_is_refused(tmp_path: Path, driver: str) -> None:
    cupti = build(tmp_path, "libcupti_older.so", cupti_stand_in(17))
    error = failure_of_start(libcuda=driver, libcupti=cupti)
    assert error.kind == "cupti-unusable"
    assert "older than CUDA 12.0" in error.cause


def of_13_2(get_version: str) -> str:
    """A stand-in that has the functions of libcupti 13.2; ``get_version`` is the body of the first that is called."""
    others = "".join(f"unsigned {name}() {{ return 0; }}\n" for name in [*REQUIRED, "cuptiActivityEnable_v2"])
    return (
        "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n"
        f"unsigned cuptiGetVersion(unsigned *v) {{ *v = 130202u; {get_version} }}\n" + others
    )


RECURSES = "volatile unsigned w[512]; w[0] = 1; return cuptiGetVersion(v) + w[0];"


def test_13_2_with_an_older_driver_is_never_called_by_this_process() -> None:
    """libcupti 13.2 recurses without end on any call when the driver is missing or does not suit: a child tries it."""
    with SimulatedGpu(cuda="13.2", driver="13.0") as gpu:
        error = failure_of_start()
        assert error.kind == "cupti-unusable"
        assert "is of CUDA 13.2, newer than the driver" in error.cause
        assert "cuptiGetVersion answers 999" in error.cause
        assert [name for name in gpu.statistics().calls if name.startswith("cupti")] == []
        assert gpu.misuse() == {}


def test_13_2_that_crashes_under_an_older_driver_crashes_another_process(tmp_path: Path, driver: str) -> None:
    cupti = build(tmp_path, "libcupti_crashes.so", of_13_2(RECURSES))
    error = failure_of_start(libcuda=driver, libcupti=cupti)
    assert error.kind == "cupti-unusable"
    assert "a process that called it was killed by signal" in error.cause
    assert "COLLECTOR_LIBCUPTI" in error.remedy


def test_13_2_that_ends_its_process_is_reported(tmp_path: Path, driver: str) -> None:
    cupti = build(tmp_path, "libcupti_exits.so", of_13_2("_exit(7);"))
    assert "ended with status 7" in failure_of_start(libcuda=driver, libcupti=cupti).cause


def test_13_2_that_works_under_an_older_driver_is_used(tmp_path: Path, driver: str) -> None:
    """Drivers differ in this: what is tried is believed, not the version number."""
    cupti = build(tmp_path, "libcupti_works.so", of_13_2("return 0;"))
    found = _native.probe(libcuda=driver, libcupti=cupti)
    assert found["cuda_version"] == 13020
    assert found["cupti_path"] == cupti


def test_a_libcupti_is_tried_once_in_a_process(tmp_path: Path, driver: str) -> None:
    trials = tmp_path / "trials"
    cupti = build(
        tmp_path, "libcupti_counts.so", of_13_2(f'FILE *f = fopen("{trials}", "a"); fputs("x", f); fclose(f); abort();')
    )
    for _ in range(3):
        assert "signal 6" in failure_of_start(libcuda=driver, libcupti=cupti).cause
    assert trials.read_text() == "x"


def test_a_trial_inherits_no_tool_of_this_process(tmp_path: Path, driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process that the driver makes load this library would try the same libcupti, and so on."""
    seen = tmp_path / "seen"
    asked = " ".join(
        f'fprintf(f, "%s ", getenv("{name}") ? "set" : "unset");'
        for name in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "LD_PRELOAD", "COLLECTOR_KEPT")
    )
    for name in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "COLLECTOR_KEPT"):
        monkeypatch.setenv(name, "/nowhere/tool.so")
    cupti = build(
        tmp_path, "libcupti_looks.so", of_13_2(f'FILE *f = fopen("{seen}", "w"); {asked} fclose(f); return 999;')
    )
    assert "cuptiGetVersion answers 999" in failure_of_start(libcuda=driver, libcupti=cupti).cause
    assert seen.read_text() == "unset unset unset set "


def test_a_trial_is_judged_where_the_program_ignores_its_children(tmp_path: Path, driver: str) -> None:
    """The kernel reaps the children of such a program, and their status is lost."""
    works = build(tmp_path, "libcupti_works.so", of_13_2("return 0;"))
    crashes = build(tmp_path, "libcupti_crashes.so", of_13_2(RECURSES))
    program = f"""
import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.close(0), os.close(2)
from collector import _native
print(_native.probe(libcuda={driver!r}, libcupti={works!r})["cuda_version"])
print(_native.probe(libcuda={driver!r}, libcupti={crashes!r})["error"])
"""
    printed = subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert printed.split() == ["13020", "cupti-unusable"]


@pytest.mark.parametrize(("then", "answer"), [("return 0;", "13020"), ("abort();", "cupti-unusable")])
def test_a_trial_ends_although_another_process_keeps_its_pipe(
    tmp_path: Path, driver: str, then: str, answer: str
) -> None:
    """A process that this library starts has the pipe, as one that the program forks at the time of the trial."""
    keeper, ended = tmp_path / "keeper", tmp_path / "ended"
    body = f"""
        if (access("{keeper}", F_OK) != 0) {{  // not again when the process itself calls it
            pid_t child = fork();
            if (child == 0) {{ sleep(25); fclose(fopen("{ended}", "w")); _exit(0); }}
            FILE *f = fopen("{keeper}", "w");
            fprintf(f, "%d", child);
            fclose(f);
        }}
        {then}"""
    cupti = build(tmp_path, "libcupti_forks.so", of_13_2(body))
    program = f"""
import os
from collector import _native
found = _native.probe(libcuda={driver!r}, libcupti={cupti!r})
print(found.get("cuda_version", found["error"]), os.path.exists({str(ended)!r}))
"""
    printed = subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, text=True).stdout
    os.kill(int(keeper.read_text()), signal.SIGKILL)
    assert printed.split() == [answer, "False"]


def test_an_unusable_libcupti_is_passed_over_for_the_next(
    tmp_path: Path, driver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("COLLECTOR_LIBCUPTI", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    paths = []
    for root, source in (("first", of_13_2(RECURSES)), ("second", cupti_stand_in(130101))):
        folder = tmp_path / root / "nvidia" / "cu13" / "lib"
        folder.mkdir(parents=True)
        paths.append(build(folder, "libcupti.so.13", source))
    found = _native.probe("", driver, [str(tmp_path / "first"), str(tmp_path / "second")])
    assert found["cupti_path"] == paths[1]
    assert found["cupti_reason"] == "the first that can be used"
    ((path, cause),) = found["cupti_passed_over"]
    assert path == paths[0]
    assert "killed by signal" in cause


def test_a_libcupti_that_cannot_be_loaded_is_passed_over_for_the_next(
    tmp_path: Path, driver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("COLLECTOR_LIBCUPTI", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    folders = [tmp_path / root / "nvidia" / "cu13" / "lib" for root in ("first", "second")]
    for folder in folders:
        folder.mkdir(parents=True)
    broken = folders[0] / "libcupti.so.13"
    broken.write_text("no library")
    works = build(folders[1], "libcupti.so.13", cupti_stand_in(130101))
    found = _native.probe("", driver, [str(tmp_path / "first"), str(tmp_path / "second")])
    assert (found["cupti_path"], found["cupti_reason"]) == (works, "the first that can be used")
    ((path, cause),) = found["cupti_passed_over"]
    assert path == str(broken)
    assert "invalid ELF header" in cause or "file too short" in cause


def test_13_2_with_its_driver_is_used() -> None:
    with SimulatedGpu(cuda="13.2") as gpu:
        _native.start({"kinds": KINDS})
        assert _native.stop() is not None
        assert gpu.misuse() == {}


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (15, "driver-not-found"),
        (2, "driver-not-found"),
        (999, "driver-not-found"),
        (35, "permission-denied"),
        (40, "permission-denied"),
        (33, "permission-denied"),
        (41, "permission-denied"),
        (43, "permission-denied"),
        (39, "subscriber-conflict"),
        (14, "subscriber-conflict"),
        (8, "cupti-call"),
    ],
)
@pytest.mark.parametrize("call", ["cuptiSubscribe", "cuptiActivityEnable", "cuptiActivityRegisterCallbacks"])
def test_codes_become_kinds(call: str, code: int, kind: str) -> None:
    with SimulatedGpu() as gpu:
        gpu.inject("error", target=call, value=code, count=-1)
        error = failure_of_start()
        assert error.kind == kind
        assert call in error.cause
        assert f", {code})" in error.cause


@pytest.mark.parametrize("failing", range(9))
def test_first_error_rolls_back_in_reverse_order(failing: int) -> None:
    with SimulatedGpu() as gpu:
        gpu.inject("error", target="cuptiActivityEnable", value=8, after=failing)
        failure_of_start(kinds=[*KINDS, "overheads", "peer_copies"])
        calls = gpu.calls()
        enabled = [call.argument for call in calls if call.function == "cuptiActivityEnable" and call.result == 0]
        disabled = [call.argument for call in calls if call.function == "cuptiActivityDisable"]
        assert len(enabled) == failing
        assert disabled == enabled[::-1]
        assert [call.function for call in calls].count("cuptiUnsubscribe") == 1
        # Nothing is left behind: the next session starts as if nothing had been.
        gpu.clear_faults()
        _native.start({"kinds": KINDS})
        gpu.launch("k", stream=7, duration_ns=1_000)
        assert len(_native.stop()["tables"]["kernels"]["start_ns"]) == 1


def test_kind_that_the_library_does_not_know_is_left_out() -> None:
    with SimulatedGpu() as gpu:
        gpu.inject("error", target="cuptiActivityEnable", value=21, after=3)
        _native.start({"kinds": KINDS})
        assert _native.stop() is not None


@pytest.mark.parametrize("cuda", ["12.4", "13.0", "13.5"])
def test_other_subscriber_is_named_where_the_library_can(cuda: str) -> None:
    with SimulatedGpu(cuda=cuda) as gpu:
        gpu.inject("second_subscriber", target="nsys", count=-1)
        error = failure_of_start()
        assert error.kind == "subscriber-conflict"
        assert ('"nsys"' in error.cause) == (cuda != "12.4")


def test_other_subscriber_without_a_name_is_not_named() -> None:
    """As PyTorch's profiler, which subscribes by a function that takes no name."""
    with SimulatedGpu(cuda="13.0") as gpu:
        gpu.inject("second_subscriber", count=-1)
        error = failure_of_start()
        assert error.kind == "subscriber-conflict"
        assert "it is" not in error.cause


def test_shared_subscription_collects_without_one() -> None:
    with SimulatedGpu() as gpu:
        gpu.inject("second_subscriber", target="kineto", count=-1)
        _native.start({"kinds": KINDS, "share_subscription": True})
        gpu.launch("k", stream=7, duration_ns=1_000)
        capture = _native.stop()
        assert capture["environment"]["shared_subscription"] is True
        assert len(capture["tables"]["kernels"]["start_ns"]) == 1


def test_bad_options_are_named() -> None:
    for options in ({"kinds": ["kernel"]}, {"buffer_bytes": 100}, {"max_buffers": 0}, {"colour": "red"}):
        with pytest.raises(ValueError, match=next(iter(options)) if "kinds" not in options else "kernel"):
            _native.start(options)


@pytest.mark.parametrize("cuda", ["12.0", "12.4", "12.6", "12.8", "13.0", "13.1", "13.2", "13.3", "13.4", "13.5"])
def test_strides_are_learnt_from_the_library(cuda: str) -> None:
    major, minor = cuda.split(".")
    with SimulatedGpu(cuda=cuda):
        learnt = _native.probe()["strides"]
    assert learnt == _native.decode_buffer(b"", int(major) * 1000 + int(minor) * 10)["strides"]


def test_probe_reports_what_was_found() -> None:
    with SimulatedGpu(cuda="12.4", devices=2, name="Toy") as gpu:
        found = _native.probe()
        assert found["available"]
        assert (found["cuda_version"], found["cupti_api_version"]) == (12040, 22)
        assert found["simulated"]
        assert [device["name"] for device in found["devices"]] == ["Toy", "Toy"]
        assert found["features"]["decline buffers"] is False
        gpu.inject("error", target="cuInit", value=100, count=-1)
        assert "cuInit: 100" in _native.probe()["cause"]


def test_mapped_libcupti_is_used_again(tmp_path: Path) -> None:
    """A second copy of libcupti in one process collides with the first: what is mapped is what is used."""
    with SimulatedGpu() as gpu:
        driver = os.environ["COLLECTOR_LIBCUDA"]
        del gpu
    # A folder laid out like site-packages, whose libcupti is loaded by the program before we look.
    folder = tmp_path / "nvidia" / "cu13" / "lib"
    folder.mkdir(parents=True)
    mapped = tmp_path / "elsewhere"
    mapped.mkdir()
    compiler = shutil.which("cc") or "gcc"
    for target in (folder, mapped):
        subprocess.run(
            [
                compiler,
                "-shared",
                "-fPIC",
                "-x",
                "c",
                "-",
                "-Wl,-soname,libcupti.so.13",
                "-o",
                f"{target}/libcupti.so.13",
            ],
            input=cupti_stand_in(130101).encode(),
            check=True,
        )
    program = f"""
import ctypes
from collector import _native
ctypes.CDLL({str(mapped / "libcupti.so.13")!r})
found = _native.probe("", {driver!r}, [{str(tmp_path)!r}])
print(found.get("cupti_path"))
"""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("COLLECTOR_LIB")}
    output = subprocess.run(
        [sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True
    ).stdout
    assert output.strip() == str(mapped / "libcupti.so.13")


@pytest.mark.parametrize(("cuda", "is_safe"), [("12.9", False), ("13.4", False), ("13.5", True)])
def test_peer_copies_are_safe_from_the_first_version_that_never_failed(cuda: str, is_safe: bool) -> None:
    with SimulatedGpu(cuda=cuda):
        assert _native.probe()["features"]["safe recording of peer copies"] is is_safe
