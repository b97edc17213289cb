"""NVTX in forked children: those that were forked before CUDA was used record as any process does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.simulator, pytest.mark.medium]

PREFIX = """
import os, signal, sys, threading
import collector
from collector import _native
from collector.testing import SimulatedGpu
from tests.support.nvtx_copy import NvtxCopy, attributes

nvtx = NvtxCopy(_native.capture_library())
inherited = nvtx.DomainCreateA(b"inherited")

def step_of(gpu):
    with collector.trace(nvtx=True, strict=True) as step:
        domain = nvtx.DomainCreateA(b"made here")
        nvtx.DomainNameCategoryA(domain, 1, b"first category")
        nvtx.DomainNameCategoryA(domain, 1000, b"last category")
        nvtx.NameOsThreadA(threading.get_native_id(), b"named here")
        nvtx.DomainRangePushEx(inherited, attributes(nvtx.DomainRegisterStringA(domain, b"outer"), category=1))
        nvtx.DomainRangePushEx(domain, attributes(nvtx.DomainRegisterStringA(domain, b"inner"), category=1000))
        gpu.launch("kernel")
        nvtx.DomainRangePop(domain)
        nvtx.DomainRangePop(inherited)
        nvtx.RangeEnd(nvtx.RangeStartA(b"started"))
    return step.recording

def child(work):
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)
        try:
            work()
        except BaseException as error:
            print(repr(error), flush=True)
        sys.stdout.flush()
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    if status:
        print("a child ended with", status, flush=True)
    return status
"""


def run(program: str, root: Path) -> list[str]:
    command = [sys.executable, "-c", PREFIX + program]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_child_forked_before_cuda_was_used_has_its_names_and_domains(root: Path) -> None:
    program = """
def work():
    with SimulatedGpu() as gpu:
        recording = step_of(gpu)
    annotations = recording.annotations
    print(recording.kernels.annotations(), annotations.texts("domain_name_id"), annotations.texts("category_name_id"))
    print(recording.nvtx_ranges.names(), recording.environment["thread_names"][threading.get_native_id()])
    print("made here" in _native.nvtx_status()["domains"])

child(work)
"""
    assert run(program, root) == [
        "['outer/inner'] ['inherited', 'made here'] ['1', 'last category']",
        "['started'] named here",
        "True",
    ]


def test_a_child_finds_no_lock_held_by_a_thread_of_its_parent(root: Path) -> None:
    program = """
is_over = threading.Event()

def make(letter):
    for number in range(10_000_000):
        if is_over.is_set():
            return
        domain = nvtx.DomainCreateA(f"{letter}{number % 400}".encode())
        nvtx.DomainNameCategoryA(domain, 1000 + number % 500, letter.encode())
        nvtx.DomainRegisterStringA(domain, f"{letter}{number}".encode())
        nvtx.NameOsThreadA(number % 4000 + 1, letter.encode())

def work():
    domain = nvtx.DomainCreateA(b"made in the child")
    nvtx.DomainRegisterStringA(domain, b"text")
    nvtx.DomainNameCategoryA(domain, 1000, b"category")
    nvtx.NameOsThreadA(threading.get_native_id(), b"child")
    if "made in the child" not in _native.nvtx_status()["domains"]:
        print("the domain is lost")

makers = [threading.Thread(target=make, args=(letter,), daemon=True) for letter in "ab"]
for maker in makers:
    maker.start()
failed = sum(child(work) != 0 for _ in range(25))
is_over.set()
for maker in makers:
    maker.join()
print(failed)
"""
    assert run(program, root) == ["0"]


def test_a_child_forked_after_cuda_was_used_waits_for_no_lock(root: Path) -> None:
    program = """
with SimulatedGpu() as gpu:
    ids = []
    with collector.trace(nvtx=True, strict=True):
        ids.append(nvtx.RangeStartA(b"of the parent"))
        gpu.launch("kernel")

    def work():
        domain = nvtx.DomainCreateA(b"made in the child")
        nvtx.RangeEnd(ids[0])
        nvtx.DomainRangePushEx(domain, attributes(nvtx.DomainRegisterStringA(domain, b"text"), category=1000))
        nvtx.DomainRangePop(domain)
        print(_native.nvtx_status()["domains"], _native.is_forked())

    child(work)
    print(len(step_of(gpu).kernels))
"""
    assert run(program, root) == ["[] True", "1"]
