"""The plugin's small parts, each by itself: options, markers' requirements, names, sharing, leaks, snapshots."""

import os
import signal
import sys
import types

import numpy as np
import pytest

from collector.testing.plugin.artifacts import longest, safe_name
from collector.testing.plugin.device_sharing import Claim, Sharing, device_names, granted, rotated
from collector.testing.plugin.devices import Device, Found, why_not
from collector.testing.plugin.leaks import LeakCheck, Memory, allocators, growth, judge_leak, total
from collector.testing.plugin.markers import Requirement
from collector.testing.plugin.plugin_options import Keep, OptionError, parse_keep
from collector.testing.plugin.snapshot_matching import snapshot_file
from collector.testing.plugin.sticky_errors import speaks_of_cuda
from collector.testing.plugin.torch_profiler import REASON, TakeTurns


@pytest.mark.parametrize(
    ("text", "keep"), [("failed", Keep("failed")), ("always", Keep("always")), ("slow:3", Keep("slow", 3))]
)
def test_which_traces_to_keep(text, keep):
    assert parse_keep(text) == keep


@pytest.mark.parametrize("text", ["", "slow", "slow:0", "slow:-1", "slow:x", "never"])
def test_another_rule_is_refused(text):
    with pytest.raises(OptionError, match="failed, always or slow:N"):
        parse_keep(text)


GIB = 1 << 30
TWO = Found((Device("Big", 80 * GIB, (9, 0)), Device("Small", 16 * GIB, (7, 5))))


@pytest.mark.parametrize(
    ("requirement", "reason"),
    [
        (Requirement(), None),
        (Requirement(count=2), None),
        (Requirement(memory=80 * GIB, compute_capability=(9, 0)), None),
        (Requirement(count=3), "needs 3 GPUs, there are 2"),
        (Requirement(memory=81 * GIB), "device 0 (Big) has 85,899,345,920 bytes"),
        (Requirement(count=2, memory=17 * GIB), "device 1 (Small) has"),
        (Requirement(count=2, compute_capability=(8, 0)), "needs compute capability 8.0, device 1 (Small) has 7.5"),
        (Requirement(compute_capability=(10, 0)), "needs compute capability 10.0, device 0 (Big) has 9.0"),
    ],
)
def test_why_a_test_cannot_run(requirement, reason):
    answer = why_not(requirement, TWO, simulating=False)
    assert answer == reason or (reason is not None and reason in answer)


def test_without_a_gpu_the_reason_is_the_drivers():
    assert why_not(Requirement(), Found(reason="no driver"), simulating=False) == "needs a GPU: no driver"


def test_a_simulated_run_takes_the_tests_that_can():
    assert why_not(Requirement(simulate=True), TWO, simulating=True) is None
    assert "not marked simulate=True" in why_not(Requirement(), TWO, simulating=True)


def test_a_plain_node_id_stays_readable():
    assert safe_name("tests/test_a.py::TestB::test_c") == "tests-test_a.py--TestB--test_c"


@pytest.mark.parametrize(
    "nodeid",
    [
        "t.py::test_x[a/b]", "t.py::test_x[a-b]", "t.py::test_x[a b]", "t.py::test_x[../../etc/passwd]",
        "t.py::test_ü[日本]", "t.py::test_x[\\u65e5]", "t.py::" + "x" * 300, "t.py::" + "x" * 301, "..", "con:",
    ],
)  # fmt: skip
def test_any_node_id_gives_a_file_name(nodeid, tmp_path):
    name = safe_name(nodeid)
    assert len(name) <= 129
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.=-")
    assert not name.startswith(".")
    (tmp_path / f"{name}.trace.json").touch()


def test_different_tests_have_different_names():
    nodeids = [
        "a/b.py::c",
        "a-b.py::c",
        "a/b.py::c[1]",
        "a/b.py::c[1/]",
        "a/b.py::c[-1-]",
        *("x" * n for n in (300, 301)),
    ]
    assert len({safe_name(nodeid) for nodeid in nodeids}) == len(nodeids)


def test_the_longest_are_chosen_and_equals_by_name():
    assert longest([(5, "b"), (9, "c"), (5, "a"), (1, "d")], 2) == {"c", "a"}


TOTAL = {"0": 100, "1": 100}


@pytest.mark.parametrize(
    ("before", "wanted", "answer"),
    [
        ([], {"0": 100}, True),
        ([], {"0": 500}, True),  # alone it fits whatever it declares
        ([{"0": 60}], {"0": 40}, True),
        ([{"0": 60}], {"0": 41}, False),
        ([{"0": 60}], {"1": 100}, True),
        ([{"0": 60}], {"1": 10, "0": 50}, False),
        ([{"0": 30}, {"0": 80}], {"0": 1}, False),  # behind a large one that waits: it is not kept waiting for long
    ],
)
def test_a_claim_waits_for_those_before_it(before, wanted, answer):
    claims = [Claim(number, num_bytes) for number, num_bytes in enumerate([*before, wanted])]
    assert granted(claims, len(before), TOTAL) is answer


def test_a_claim_of_a_dead_process_is_void(tmp_path):
    file = tmp_path / "claims.json"
    file.write_text('[{"process": 4194304999, "num_bytes": {"0": 100}}]')
    sharing = Sharing(file, TOTAL)
    sharing.claim({"0": 100})
    assert "4194304999" not in file.read_text()
    assert '"0": 100' in file.read_text()
    sharing.release()
    assert file.read_text() == "[]"


def test_a_child_that_was_forked_meanwhile_does_not_keep_the_claims(tmp_path):
    sharing = Sharing(tmp_path / "claims", TOTAL)
    with sharing._claims():
        if (child := os.fork()) == 0:
            signal.pause()
    try:
        sharing.claim({"0": 100})  # the test's time limit ends the wait
        sharing.release()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_each_worker_begins_with_another_device():
    names = device_names("GPU-a, GPU-b,GPU-c", 3)
    assert names == ["GPU-a", "GPU-b", "GPU-c"]
    assert rotated(names, 1) == ["GPU-b", "GPU-c", "GPU-a"]
    assert rotated(names, 3) == names
    assert rotated(device_names(None, 2), 1) == ["1", "0"]
    assert rotated([], 1) == []


def memory(device, **frameworks):
    return Memory(device, frameworks)


@pytest.mark.parametrize(
    ("own", "unfreed", "frameworks", "leaks"),
    [
        (memory(100, torch=64), 0, True, True),
        (memory(100, torch=0), 0, True, False),  # the allocator gave it back in the end
        (memory(100, torch=-8), 0, True, False),
        (memory(0, torch=64), 9, True, False),  # the device says no
        (memory(100), 9, True, False),  # the allocator says no, whatever the calls
        (memory(100), 1, False, True),
        (memory(100), 0, False, False),  # somebody else's
        (memory(0), 1, False, False),
        (memory(-100), 1, False, False),
    ],
)
def test_a_leak_needs_two_witnesses(own, unfreed, frameworks, leaks):
    assert (judge_leak(own, unfreed, frameworks=frameworks) is not None) is leaks


def test_growths_add_up_and_shrinking_is_negative():
    first = growth(memory(5, torch=7, cupy=1), memory(3, torch=8, cupy=1))
    assert first == memory(-2, cupy=0, torch=1)
    assert total(first, growth(memory(3), memory(10, jax=4))) == memory(5, cupy=0, jax=4, torch=1)


class FakeTorch:
    """As much of torch.cuda as the leak check asks."""

    def __init__(self):
        self.blocks = {}
        self.emptied = 0
        self.cuda = self

    def is_initialized(self):
        return True

    def device_count(self):
        return 2

    def memory_allocated(self, device):
        return sum(self.blocks.values()) if device == 0 else 0

    def empty_cache(self):
        self.emptied += 1

    def memory_snapshot(self):
        frames = [{"filename": "/x/site-packages/torch/a.py", "line": 1}, {"filename": "model.py", "line": 31}]
        blocks = [{"state": "inactive", "size": 256}]
        blocks += [
            {"state": "active_allocated", "size": n, "address": a, "frames": frames} for a, n in self.blocks.items()
        ]
        return [{"address": 0, "blocks": blocks}]


@pytest.fixture
def torch(monkeypatch):
    fake = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", fake)
    monkeypatch.setattr("collector.testing.plugin.leaks.mapped_driver", lambda: FakeDriver(fake))
    return fake


class FakeDriver:
    def __init__(self, torch):
        self.torch = torch

    def synchronize(self):
        return 0

    def used_bytes(self):
        return {0: 1000 + sum(self.torch.blocks.values())}


def test_a_tensor_that_stays_is_a_leak_named_with_its_line(torch):
    torch.blocks[0x10] = 512
    check = LeakCheck()
    torch.blocks[0x20] = 4096
    check.finish()
    leak, held = check.judge(0)
    assert (leak.device, dict(leak.allocators)) == (4096, {"PyTorch": 4096})
    assert held == ["PyTorch: 4,096 bytes, model.py:31"]
    text = leak.message("test_x", held)
    assert text.splitlines()[0] == (
        "test_x leaks GPU memory: the device's grew by 4,096 bytes, PyTorch's allocator by 4,096 bytes"
    )
    assert text.splitlines()[-1] == "  PyTorch: 4,096 bytes, model.py:31"


def test_what_the_fixtures_give_back_is_no_leak(torch):
    check = LeakCheck()
    torch.blocks[0x10] = 512
    torch.blocks[0x20] = 4096
    torch.blocks.clear()
    check.finish()
    assert check.judge(0) == (None, [])


def test_what_a_wider_fixture_takes_is_no_leak_and_what_it_gives_back_hides_none(torch):
    torch.blocks[0x10] = 512
    check = LeakCheck()
    check.leave()
    torch.blocks[0x20] = 4096
    check.come_back()
    check.finish()
    assert check.judge(0) == (None, [])
    check = LeakCheck(check.known)
    torch.blocks[0x30] = 64
    check.leave()
    del torch.blocks[0x20]
    torch.blocks[0x40] = 128
    check.come_back()
    del torch.blocks[0x10]
    check.forget_release()
    check.finish()
    leak, held = check.judge(0)
    assert leak is not None
    assert (leak.device, held) == (64, ["PyTorch: 64 bytes, model.py:31"])


@pytest.fixture
def collections(monkeypatch):
    """One for each time that the leak check has garbage collected."""
    counted = []
    monkeypatch.setattr("collector.testing.plugin.leaks.gc", types.SimpleNamespace(collect=lambda: counted.append(1)))
    return counted


def test_garbage_is_collected_only_where_memory_grew(torch, collections):
    check = LeakCheck()
    assert len(collections) == 1  # nobody knows what was there before
    check.finish()
    for _ in range(5):
        check = LeakCheck(check.known)
        torch.blocks[0x10] = 512
        del torch.blocks[0x10]
        check.leave()
        check.come_back()
        check.finish()
    assert len(collections) == 1
    check = LeakCheck(check.known)
    torch.blocks[0x10] = 512
    check.finish()
    assert len(collections) == 2
    LeakCheck(check.known)
    assert len(collections) == 2
    torch.blocks[0x20] = 512  # between two tests
    LeakCheck(check.known)
    assert len(collections) == 3


def test_cupys_pool_is_asked_on_every_device(monkeypatch):
    used = {0: 10, 1: 20}
    current = []

    class OnDevice:
        def __init__(self, device):
            self.device = device

        def __enter__(self):
            current.append(self.device)

        def __exit__(self, *exc):
            current.pop()

    pool = types.SimpleNamespace(
        used_bytes=lambda: used[current[-1]], free_all_blocks=lambda: used.update({current[-1]: 0})
    )
    runtime = types.SimpleNamespace(getDeviceCount=lambda: 2)
    cupy = types.SimpleNamespace(
        cuda=types.SimpleNamespace(Device=OnDevice, runtime=runtime), get_default_memory_pool=lambda: pool
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    (allocator,) = allocators()
    assert (allocator.name, allocator.used_bytes(), allocator.live()) == ("CuPy", 30, {})
    allocator.settle()
    assert used == {0: 0, 1: 0}


@pytest.mark.parametrize(
    ("text", "cuda"),
    [
        ("RuntimeError: CUDA error: an illegal memory access was encountered", True),
        ("cupy_backends.cuda.api.driver.CUDADriverError: CUDA_ERROR_ILLEGAL_ADDRESS", True),
        ("cudaErrorLaunchFailure: unspecified launch failure", True),
        ("assert 1 == 2", False),
    ],
)
def test_failures_that_a_broken_context_explains(text, cuda):
    assert speaks_of_cuda(text) is cuda


class Turns:
    def __init__(self):
        self.reasons = []

    def pause(self, reason):
        self.reasons.append(reason)

    def resume(self):
        self.reasons.append("resumed")


def test_pytorchs_profiler_and_ours_take_turns(monkeypatch):
    tracing = Turns()
    module = types.SimpleNamespace(
        _prepare_profiler=lambda x: tracing.reasons.append(f"prepared {x}"), _disable_profiler=lambda: 1 / 0
    )
    original = dict(vars(module))
    turns = TakeTurns(tracing)
    turns.arrange()  # torch is not loaded: nothing to do
    monkeypatch.setitem(sys.modules, "torch.autograd.profiler", module)
    turns.arrange()
    turns.arrange()
    module._prepare_profiler("kineto")
    with pytest.raises(ZeroDivisionError):
        module._disable_profiler()
    assert tracing.reasons == [REASON, "prepared kineto", "resumed"]
    turns.undo()
    assert vars(module) == original


def brute_overlap(rows, by):
    covered = np.zeros(10_000, bool)
    for start, end in by:
        covered[start:end] = True
    return sum(int(covered[start:end].sum()) for start, end in rows) / sum(end - start for start, end in rows)


def test_overlap_is_what_counting_every_nanosecond_gives(build):
    from collector.testing.plugin.traced_step import StepTable

    random = np.random.default_rng(7)
    spans = {name: [(int(s), int(s + d)) for s, d in random.integers(1, 300, (30, 2)) * [20, 1]] for name in "kc"}
    for start, end in spans["k"]:
        build.kernel("k", start, end - start)
    for start, end in spans["c"]:
        build.memcpy(start, end - start)
    build.kernel("elsewhere", 0, 9000, device_id=1)
    recording = build.recording()
    kernels = StepTable(recording.kernels, {n: getattr(recording, n) for n in ("kernels", "memcpys", "memsets")})
    assert kernels.overlap("copy") == pytest.approx(brute_overlap(spans["c"], spans["k"]), abs=1e-12)
    assert 0 < kernels.overlap("copy") < 1
    assert kernels.names()[-1] == "elsewhere"
    with pytest.raises(ValueError, match="the step has no memset"):
        kernels.overlap("memset")
    with pytest.raises(ValueError, match="choose from kernel, copy, memset"):
        kernels.overlap("copies")


@pytest.mark.parametrize(
    ("parent", "name", "group", "file"),
    [
        ("test_a.py", "test_x", "", "test_x.json"),
        ("test_a.py", "test_x", "@gpu0@x", "test_x.json"),
        ("tests/test_a.py::TestC", "test_x", "@gpu0", "TestC--test_x.json"),
    ],
)
def test_files_of_snapshots_do_not_depend_on_the_groups_of_xdist(parent, name, group, file):
    """With --dist=loadgroup node ids have the group, before pytest 9."""
    item = types.SimpleNamespace(
        nodeid=f"{parent}::{name}{group}", name=name, parent=types.SimpleNamespace(nodeid=parent)
    )
    assert snapshot_file(item, "") == file
    assert snapshot_file(item, "2") == snapshot_file(types.SimpleNamespace(**{**vars(item), "nodeid": "?"}), "2")
