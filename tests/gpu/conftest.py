"""These tests need a GPU: without one they are skipped with the reason, or fail if COLLECTOR_REQUIRE_GPU is set."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # cuda_program is also imported by the programs that the tests start

import simulated_cuda  # noqa: E402
from cuda_program import CudaProgram, why_no_gpu  # noqa: E402
from timed_programs import PROGRAM_SECONDS, run_timed  # noqa: E402

if simulated_cuda.asked_for():
    simulated_cuda.install()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("COLLECTOR_REQUIRE_GPU") == "1":
        return  # the plugin would skip tests with its marker; here `gpu_here` reports a missing GPU
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.gpu)


@pytest.fixture(scope="session", autouse=True)
def gpu_here() -> None:
    """Skip or fail if there is no GPU."""
    reason = why_no_gpu()
    if not reason:
        return
    if os.environ.get("COLLECTOR_REQUIRE_GPU") == "1":
        raise RuntimeError(f"COLLECTOR_REQUIRE_GPU is set, but {reason}")
    pytest.skip(f"NO GPU: {reason.partition('. ')[0]}")


@pytest.fixture(scope="session")
def real_gpu(gpu_here: None) -> None:
    """For tests of features that only a real GPU or a real libcupti has."""
    if simulated_cuda.asked_for():
        pytest.skip("the simulator is not a real GPU")


@pytest.fixture(scope="session")
def is_simulated() -> bool:
    """Whether the tests run on the simulator."""
    return simulated_cuda.asked_for()


@pytest.fixture
def show(capsys: pytest.CaptureFixture[str], record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Prints a line that is seen even if the test passes: what a real GPU does where it may do several things.

    The report of `make gpu` has these lines, too.
    """

    def print_line(line: str) -> None:
        record_property("shown", line)
        with capsys.disabled():
            print(f"\n  {line}")

    return print_line


@pytest.fixture(scope="session")
def million() -> int:
    """Launches of the tests with very many: a million, and few on the simulator, where many would prove nothing."""
    return 20_000 if simulated_cuda.asked_for() else 1_000_000


@pytest.fixture(scope="session")
def cuda(gpu_here: None) -> CudaProgram:
    """The program that all tests of this process share, warmed up by a first launch and copy."""
    program = CudaProgram()
    stream = program.stream()
    program.launch_empty(1, stream)
    program.synchronize()
    return program


@pytest.fixture(scope="session")
def unaware_program(cuda: CudaProgram) -> Path:
    """The program of `tests/inject/range_program.c`, which imports and links nothing of ours."""
    from injected_programs import range_program, range_program_of_the_runtime

    if simulated_cuda.asked_for():
        return range_program()
    return range_program_of_the_runtime("sm_{}{}".format(*cuda.capability))


@pytest.fixture
def python_text(gpu_here: None, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Prepares Python text that uses ``cuda_program`` for a separate process."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]))
    return lambda text: (
        ("import simulated_cuda\nsimulated_cuda.install()\n" if simulated_cuda.asked_for() else "") + text
    )


@pytest.fixture
def run_program(python_text: Callable[[str], str]) -> Callable[..., str]:
    """Runs Python text with ``cuda_program`` in a separate process; returns its output.

    The process must end within its time limit with ``status``; a negative number is that of a signal.
    """

    def run(text: str, status: int = 0, *, seconds: float = PROGRAM_SECONDS) -> str:
        done = run_timed([sys.executable, "-c", python_text(text)], seconds=seconds)
        assert done.returncode == status, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run
