"""A program that listens, and launches kernels on the simulated GPU until its input ends."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = """
import os, sys, threading, time
import collector
from collector.testing import SimulatedGpu
gpu = SimulatedGpu().__enter__()
collector.listen(strict=True)
ended = threading.Event()
def launch():
    while not ended.is_set():
        with collector.annotate("loop", flops=2.0):
            gpu.launch("kernel")
            gpu.launch("other", stream=9)
            gpu.synchronize()
        time.sleep(0.002)
thread = threading.Thread(target=launch)
wait = sys.stdin.read
"""
SAY_PID = r'os.write(1, b"%d\n" % os.getpid())'
"""In one piece, so that the lines of a program and its forked child do not mix."""
UNTIL_INPUT_ENDS = f"""
thread.start()
{SAY_PID}
try:
    wait()
finally:  # an error must end the program
    ended.set()
    thread.join()
"""


@contextlib.contextmanager
def listening_program(before: str = "", *, program: str = PROGRAM, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """The running program, which has to end well by itself, or was waited for in the block."""
    child = subprocess.Popen(
        [sys.executable, "-c", program + before + UNTIL_INPUT_ENDS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline().strip() == str(child.pid), child.communicate()[1]
        yield child
        if child.returncode is None:
            _, errors = child.communicate()
            assert (child.returncode, errors) == (0, "")
    except BaseException:
        if child.returncode is None:
            child.kill()
            print(child.communicate()[1], file=sys.stderr)  # what the program itself said
        raise
    finally:
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout, child.stderr):
            if pipe is not None:
                pipe.close()
