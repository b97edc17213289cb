"""benchmarks/_placement.py: the cores of a benchmark, and the placement of its threads."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.fixture
def placement(root, load_module):
    return load_module(root / "benchmarks" / "_placement.py")


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Two nodes of four hyperthreads, a GPU at the second; every core is allowed."""
    files = {
        "devices/system/node/node0/cpulist": "0-1,4-5",
        "devices/system/node/node1/cpulist": "2-3,6-7",
        "devices/system/cpu/cpu7/topology/thread_siblings_list": "3,7",
        "devices/system/cpu/cpu5/topology/thread_siblings_list": "1,5",
        "bus/pci/devices/0000:1b:00.0/numa_node": "1\n",
        "bus/pci/devices/0000:2c:00.0/numa_node": "-1\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    allowed = set(range(8))
    monkeypatch.setattr(os, "sched_getaffinity", lambda thread: set(allowed), raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda thread, cores: None, raising=False)
    return tmp_path, allowed


def test_launching_has_a_core_near_the_gpu_and_others_none_of_its_hyperthreads(placement, machine):
    found = placement.choose("0000:1B:00.0", machine[0])
    assert found == placement.Placement(7, frozenset({2, 6}))
    assert placement.Placement.from_text(found.to_text()) == found
    assert placement.facts_of(found) == {"launching_core": 7, "cores_of_other_threads": [2, 6]}


@pytest.mark.parametrize("bus_id", ["", "0000:2C:00.0", "0000:99:00.0"], ids=["unknown", "no node", "not there"])
def test_without_a_node_of_the_gpu_the_larger_share_of_what_is_allowed_is_used(placement, machine, bus_id):
    system, allowed = machine
    allowed -= {2, 3, 6}
    assert placement.choose(bus_id, system) == placement.Placement(5, frozenset({0, 4}))


def test_a_node_of_the_gpu_that_is_not_allowed_is_not_used(placement, machine):
    system, allowed = machine
    allowed -= {2, 3, 6, 7}
    assert placement.choose("0000:1B:00.0", system).core == 5


def test_two_hyperthreads_of_one_core_are_shared_out(placement, machine):
    system, allowed = machine
    allowed &= {3, 7}
    assert placement.choose("", system) == placement.Placement(7, frozenset({3}))


def test_without_a_choice_the_reason_is_printed(placement, machine, monkeypatch):
    system, allowed = machine
    allowed &= {3}
    assert placement.choose("", system) == "there is one core only"

    def refused(thread, cores):
        raise PermissionError("no")

    monkeypatch.setattr(os, "sched_setaffinity", refused, raising=False)
    assert placement.facts_of(placement.choose("", system)) == {
        "launching_core": "any: this system does not let a thread choose its core (no)"
    }
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert "does not let" in placement.choose("", system)


def test_without_being_given_cores_nothing_is_moved(placement, monkeypatch):
    monkeypatch.delenv(placement.VARIABLE, raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda *given: pytest.fail("moved"), raising=False)
    placement.settle()
    with placement.launching() as move_others:
        move_others()


THREADS = """
import os, sys, threading
sys.path.insert(0, sys.argv[1])
import _placement
found = _placement.choose()
os.environ[_placement.VARIABLE] = found.to_text()
done, started = threading.Event(), []

def start():
    thread = threading.Thread(target=done.wait, daemon=True)
    thread.start()
    started.append(thread.native_id)

def where():
    return [os.sched_getaffinity(thread) for thread in (0, *started)]

_placement.settle()
start()
core, others, everywhere = {found.core}, set(found.others), set(found.all)
assert where() == [everywhere, everywhere], where()
with _placement.launching() as move_others:
    assert where() == [core, others], where()
    start()
    assert where() == [core, others, core], where()
    move_others()
    assert where() == [core, others, others], where()
    start()
assert where() == [everywhere] * 4, where()
done.set()
"""


@pytest.mark.skipif(len(getattr(os, "sched_getaffinity", lambda _: [0])(0)) < 2, reason="NEEDS TWO CORES")
def test_threads_are_where_they_were_put_and_go_free_afterwards(root):
    done = subprocess.run(
        [sys.executable, "-c", THREADS, str(root / "benchmarks")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
