"""NVTX ranges in a traced step: every form of a push, domains, selection, odd texts, threads."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import collector
from collector.errors import CollectorError, InvalidFileError
from collector.recording.journal import load_journal
from collector.testing import SimulatedGpu
from tests.support.nvtx_copy import NOT_TRACKED, attributes

pytestmark = pytest.mark.simulator


def kernels(step) -> dict[str, str]:
    """Kernel -> the annotation around its launch."""
    return {kernel.name: kernel.annotation for kernel in step.recording.kernels}


def ranges(step) -> list[str]:
    return [each.name for each in step.recording.annotations]


def forms(nvtx):
    domain = nvtx.DomainCreateA(b"forms")
    wide = nvtx.DomainRegisterStringW(domain, "wide registered é")
    return {
        "A": (lambda: nvtx.RangePushA("narrow é".encode()), nvtx.RangePop, "narrow é"),
        "W": (lambda: nvtx.RangePushW("wide é 🟩"), nvtx.RangePop, "wide é 🟩"),
        "Ex": (lambda: nvtx.RangePushEx(attributes(b"ex")), nvtx.RangePop, "ex"),
        "Ex wide": (lambda: nvtx.RangePushEx(attributes("ex wide é")), nvtx.RangePop, "ex wide é"),
        "domain": (
            lambda: nvtx.DomainRangePushEx(domain, attributes(b"in domain")),
            lambda: nvtx.DomainRangePop(domain),
            "in domain",
        ),
        "registered": (
            lambda: nvtx.DomainRangePushEx(domain, attributes(nvtx.DomainRegisterStringA(domain, b"registered"))),
            lambda: nvtx.DomainRangePop(domain),
            "registered",
        ),
        "registered wide": (
            lambda: nvtx.DomainRangePushEx(domain, attributes(wide)),
            lambda: nvtx.DomainRangePop(domain),
            "wide registered é",
        ),
    }


@pytest.mark.parametrize("form", ["A", "W", "Ex", "Ex wide", "domain", "registered", "registered wide"])
def test_a_range_of_every_form_names_the_launches_inside_it(gpu, nvtx, form):
    push, pop, name = forms(nvtx)[form]
    with collector.trace() as step:
        assert push() == 0
        gpu.launch("inside")
        assert pop() == 0
        gpu.launch("outside")
    assert kernels(step) == {"inside": name, "outside": ""}
    assert ranges(step) == [name]
    assert step.ledger.complete


def test_ranges_and_annotations_nest_in_each_other(gpu, nvtx):
    with collector.trace() as step:
        with collector.annotate("step"):
            nvtx.RangePushA(b"layer")
            with collector.annotate("conv"):
                gpu.launch("a")
                nvtx.RangePushA(b"tile")
                gpu.launch("b")
                nvtx.RangePop()
            gpu.launch("c")
            nvtx.RangePop()
            gpu.launch("d")
        nvtx.RangePushA(b"outer")
        with collector.annotate("x"), collector.annotate("y"):
            gpu.launch("e")
        nvtx.RangePop()
    assert kernels(step) == {
        "a": "step/layer/conv",
        "b": "step/layer/conv/tile",
        "c": "step/layer",
        "d": "step",
        "e": "outer/x/y",
    }


def test_levels_count_the_ranges_of_a_domain(gpu, nvtx):
    one, two = nvtx.DomainCreateA(b"one"), nvtx.DomainCreateA(b"two")
    with collector.trace():
        assert nvtx.DomainRangePushEx(one, attributes(b"a")) == 0
        assert nvtx.DomainRangePushEx(two, attributes(b"b")) == 0
        assert nvtx.DomainRangePushEx(one, attributes(b"c")) == 1
        assert nvtx.DomainRangePop(one) == 1
        assert nvtx.DomainRangePop(two) == 0
        assert nvtx.DomainRangePop(one) == 0
        assert nvtx.DomainRangePop(one) == NOT_TRACKED


def test_domains_need_not_nest(gpu, nvtx):
    one, two = nvtx.DomainCreateA(b"one"), nvtx.DomainCreateW("two")
    with collector.trace() as step:
        nvtx.DomainRangePushEx(one, attributes(b"a"))
        gpu.launch("first")
        nvtx.DomainRangePushEx(two, attributes(b"b"))
        gpu.launch("both")
        nvtx.DomainRangePop(one)
        gpu.launch("second")
        nvtx.DomainRangePop(two)
        gpu.launch("none")
    assert kernels(step) == {"first": "a", "both": "a/b", "second": "a/b", "none": ""}
    first, second = step.recording.annotations
    assert first.start_ns < second.start_ns < first.end_ns < second.end_ns


def test_an_annotation_may_end_inside_a_range(gpu, nvtx):
    with collector.trace() as step:
        with collector.annotate("block"):
            nvtx.RangePushA(b"range")
            gpu.launch("both")
        gpu.launch("range alone")
        nvtx.RangePop()
        gpu.launch("none")
    assert kernels(step) == {"both": "block/range", "range alone": "block/range", "none": ""}


def test_only_the_selected_domains_are_recorded(gpu, nvtx):
    one, two = nvtx.DomainCreateA(b"one"), nvtx.DomainCreateA(b"two")
    with collector.trace(nvtx=["two"]) as step:
        late = nvtx.DomainCreateA(b"late")
        assert late  # a domain without a handle would be given up for good by its program
        for domain, name in ((None, b"default"), (one, b"one's"), (two, b"two's"), (late, b"late's")):
            nvtx.DomainRangePushEx(domain, attributes(name))
        gpu.launch("kernel")
        assert nvtx.DomainRangePop(one) == NOT_TRACKED
        assert nvtx.DomainRangePop(two) == 0
    assert kernels(step) == {"kernel": "two's"}
    with collector.trace(nvtx=[""]) as step:
        nvtx.RangePushA(b"default")
        nvtx.DomainRangePushEx(two, attributes(b"two's"))
        gpu.launch("kernel")
        nvtx.DomainRangePop(two)
        nvtx.RangePop()
    assert kernels(step) == {"kernel": "default"}


@pytest.mark.parametrize("name", ["x" * 4096, "x" * 4101, "é" * 5000, "x" * 100_000, "loader, seq = 1"])
def test_a_domain_of_any_name_can_be_selected(gpu, nvtx, name):
    domain = nvtx.DomainCreateA(name.encode())
    with collector.trace(nvtx=[name]) as step:
        nvtx.DomainRangePushEx(domain, attributes(b"range"))
        gpu.launch("kernel")
        nvtx.DomainRangePop(domain)
    assert kernels(step) == {"kernel": "range"}
    assert "nvtx_domains_absent" not in step.ledger.source_counters


def test_a_domain_that_was_chosen_and_never_made_is_named(gpu, nvtx, monkeypatch):
    monkeypatch.setattr("collector.tracing.nvtx._MOST_NAMED", 1000)  # other tests have made domains in this process
    nvtx.DomainCreateA(b"one")
    with (
        pytest.warns(collector.CollectorWarning, match="no NVTX domain named 'typo' was seen; the program has: '"),
        collector.trace(nvtx=["typo", "one", ""]) as step,
    ):
        gpu.launch("kernel")
    assert step.ledger.source_counters["nvtx_domains_absent"] == 1
    assert step.recording.environment["nvtx_absent"] == "typo"
    assert "one" in step.recording.environment["nvtx_domains"].split(", ")
    assert any("1 NVTX domain that was chosen was not seen" in line for line in step.ledger.losses())


def test_a_domain_that_is_no_unicode_is_refused(gpu, nvtx):
    with pytest.raises(ValueError, match="has a lone surrogate"):
        collector.trace(nvtx=["dom\ud800"])


def test_nothing_is_recorded_without_a_trace_or_with_ranges_off(gpu, nvtx):
    assert nvtx.RangePushA(b"before") == NOT_TRACKED
    assert nvtx.RangePop() == NOT_TRACKED
    with collector.trace(nvtx=False) as step:
        assert nvtx.RangePushA(b"off") == NOT_TRACKED
        gpu.launch("kernel")
        nvtx.RangePop()
    assert kernels(step) == {"kernel": ""}


def test_a_range_that_is_open_where_a_trace_begins_or_ends_names_nothing_in_the_next(gpu, nvtx):
    nvtx.RangePushA(b"before")
    with collector.trace() as first:
        gpu.launch("a")
        assert nvtx.RangePop() == NOT_TRACKED
        nvtx.RangePushA(b"left open")
        gpu.launch("b")
    with collector.trace() as second:
        gpu.launch("c")
        nvtx.RangePushA(b"new")
        gpu.launch("d")
        nvtx.RangePop()
        gpu.launch("e")
    assert kernels(first) == {"a": "", "b": "left open"}
    assert kernels(second) == {"c": "", "d": "new", "e": ""}


def test_attributes_of_an_older_nvtx_end_earlier(gpu, nvtx):
    """What lies beyond ``size`` is not ours to read: here the message itself."""
    with collector.trace() as step:
        nvtx.RangePushEx(attributes(b"unseen", size=32))
        nvtx.RangePushEx(None)
        nvtx.RangePop()
        nvtx.RangePop()
    assert ranges(step) == ["(no name)", "(no name)/(no name)"]


def test_odd_texts_become_names(gpu, nvtx):
    texts = {
        b"": "(no name)",
        b"\xff\xfe raw": "\\xff\\xfe raw",
        b"x" * (1 << 20): "x" * 4093 + "…",
        "é".encode() * 2100: "é" * 2046 + "…",
        b"aten::addmm, seq = 1, op_id = 5, sizes = [[4], [2, 4]], input_op_ids = [(0,-1)]": "aten::addmm",
        b"autograd::engine::evaluate_function: SumBackward0, op_id = 19": "autograd::engine::evaluate_function: "
        "SumBackward0",
        b"forward, backward": "forward, backward",
        b"a/b": "a/b",
    }
    with collector.trace() as step:
        for text in texts:
            nvtx.RangePushA(text)
            nvtx.RangePop()
        nvtx.RangePushW("\ud800 alone")
        nvtx.RangePop()
    assert ranges(step) == [*texts.values(), "\N{REPLACEMENT CHARACTER} alone"]


def test_numbers_and_shapes_of_pytorchs_ops_are_columns(gpu, nvtx):
    texts = {
        b"aten::addmm, seq = 0, op_id = 5, sizes = [[4], [2, 4], []], input_op_ids = [(0,-1)]": (
            1,
            "[[4], [2, 4], []]",
        ),
        b"aten::cat, op_id = 6, sizes = [[[2, 3], [2, 3]]]": (0, "[[[2, 3], [2, 3]]]"),
        b"MulBackward0, seq = 9223372036854775806": (2**63 - 1, ""),
        b"too large, seq = 9223372036854775807": (0, ""),
        b"no number, seq = x, sizes = 4": (0, ""),
        b"no end, seq = 7, sizes = [[%s" % (b"1, " * 400): (8, ""),
        b"cut, seq = 7, sizes = [[%s]]" % (b"1, " * 2000): (8, "[[" + "1, " * 1363 + "1,…"),
        b"empty, sizes = []": (0, "[]"),
        b"forward, backward": (0, ""),
    }
    with collector.trace() as step:
        for text in texts:
            nvtx.RangePushA(text)
            nvtx.RangePop()
    table = step.recording.annotations
    assert list(zip(table.op_sequence.tolist(), table.texts("shapes_text_id"), strict=True)) == list(texts.values())
    (loss,) = step.ledger.record_losses()  # nothing ran on a GPU
    assert loss.startswith("1 annotation, range or mark has ")


def run_ops(gpu, nvtx):
    nvtx.RangePushA(b"aten::addmm, seq = 3, op_id = 5, sizes = [[4], [2, 4]]")
    nvtx.RangePushA(b"plain")
    gpu.launch("gemm")
    nvtx.RangePop()
    nvtx.RangePop()


def ops_in(recording):
    table = recording.annotations
    return sorted(zip(table.names(), table.op_sequence.tolist(), table.texts("shapes_text_id"), strict=True))


OPS = [("aten::addmm", 4, "[[4], [2, 4]]"), ("aten::addmm/plain", 0, "")]


def test_numbers_and_shapes_are_in_every_file(gpu, nvtx, tmp_path):
    with collector.trace() as step:
        run_ops(gpu, nvtx)
    for suffix in ("gpurec", "pb", "json"):
        step.save(tmp_path / f"step.{suffix}")
        assert ops_in(collector.load(tmp_path / f"step.{suffix}").recording) == OPS, suffix
    events = json.loads((tmp_path / "step.json").read_text())["traceEvents"]
    arguments = {event["name"]: event["args"] for event in events if event.get("cat") == "op"}
    assert arguments["aten::addmm"].items() >= {"seq": 3, "shapes": "[[4], [2, 4]]"}.items()
    assert not {"seq", "shapes"} & arguments["aten::addmm/plain"].keys()
    step.save(tmp_path / "step.pftrace")
    assert b"[[4], [2, 4]]" in (tmp_path / "step.pftrace").read_bytes()


def test_numbers_and_shapes_are_in_journals(gpu, nvtx, tmp_path):
    with collector.trace(journal=tmp_path / "journal", stream=True):
        run_ops(gpu, nvtx)
    assert ops_in(collector.load(tmp_path / "journal").recording) == OPS


def test_arrows_lead_from_ops_to_their_backward_passes(nvtx, tmp_path):
    texts = [
        b"aten::linear, seq = 3, op_id = 1",
        b"aten::addmm, seq = 3, op_id = 2",
        None,
        None,
        b"aten::relu, seq = 4, op_id = 3",
        None,
        b"autograd::engine::evaluate_function: ReluBackward0, seq = 4, op_id = 4",
        b"ReluBackward0, seq = 4, op_id = 5",
        b"aten::mul, op_id = 6",
        None,
        None,
        None,
        b"autograd::engine::evaluate_function: AddmmBackward0, seq = 3, op_id = 7",
        None,
        b"autograd::engine::evaluate_function: MulBackward0, seq = 9, op_id = 8",
        None,
    ]
    with SimulatedGpu(real_time=True), collector.trace() as step:
        for text in texts:
            time.sleep(1e-4)  # so that the starts tell the slices
            if text is None:
                nvtx.RangePop()
            else:
                nvtx.RangePushA(text)
    step.save(tmp_path / "step.json")
    events = json.loads((tmp_path / "step.json").read_text())["traceEvents"]
    slices = {round(event["ts"] * 1000): event["name"] for event in events if event.get("cat") == "op"}
    flows = [event for event in events if event.get("cat") == "fwdbwd"]
    ends = {event["id"]: slices[round(event["ts"] * 1000)] for event in flows if event["ph"] == "f"}
    starts = {event["id"]: slices[round(event["ts"] * 1000)] for event in flows if event["ph"] == "s"}
    assert len(flows) == 4
    assert {starts[number]: ends[number] for number in ends} == {
        "aten::linear/aten::addmm": "autograd::engine::evaluate_function: AddmmBackward0",
        "aten::relu": "autograd::engine::evaluate_function: ReluBackward0",
    }


def test_a_handle_stays_valid_after_its_domain_was_destroyed(gpu, nvtx):
    domain = nvtx.DomainCreateA(b"short-lived")
    text = nvtx.DomainRegisterStringA(domain, b"name")
    nvtx.DomainDestroy(domain)
    with collector.trace() as step:
        nvtx.DomainRangePushEx(domain, attributes(text))
        gpu.launch("kernel")
        nvtx.DomainRangePop(domain)
    assert kernels(step) == {"kernel": "name"}


def test_a_thread_that_ends_inside_a_range_closes_it(gpu, nvtx):
    numbers = []

    def work():
        numbers.append(threading.get_native_id())
        nvtx.RangePushA(b"never popped")
        gpu.launch("in thread")

    with collector.trace() as step:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        while Path(f"/proc/self/task/{numbers[0]}").exists():  # join() does not wait for the thread's destructors
            time.sleep(0.001)
        gpu.launch("after")
    assert kernels(step) == {"in thread": "never popped", "after": ""}
    (one,) = step.recording.annotations
    assert one.end_ns < max(each.start_ns for each in step.recording.api_calls)


def test_threads_have_ranges_of_their_own(gpu, nvtx):
    barrier = threading.Barrier(4)

    def work(number):
        for turn in range(50):
            barrier.wait()
            nvtx.RangePushA(f"thread {number}".encode())
            gpu.launch(f"kernel {number}.{turn}")
            nvtx.RangePop()

    with collector.trace() as step:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert kernels(step) == {f"kernel {n}.{turn}": f"thread {n}" for n in range(4) for turn in range(50)}


def test_a_named_thread_has_its_name(gpu, nvtx):
    nvtx.NameOsThreadW(threading.get_native_id(), "feeder é")
    nvtx.NameOsThreadA(2**31, b"of nobody")
    try:
        with collector.trace() as step:
            gpu.launch("kernel")
    finally:
        nvtx.NameOsThreadA(threading.get_native_id(), b"")
    names = step.recording.environment["thread_names"]
    assert names[threading.get_native_id()] == "feeder é"
    assert 2**31 not in names


@pytest.mark.slow
def test_names_beyond_the_limit_are_counted_and_share_one(gpu, nvtx):
    most = 1 << 17
    with collector.trace() as step:
        for number in range(most + 3):
            nvtx.RangePushA(b"%d" % number)
            nvtx.RangePop()
        nvtx.RangePushA(b"7")  # a known one
        nvtx.RangePop()
    assert ranges(step)[most - 1 :] == [str(most - 1), *["(one of too many names)"] * 3, "7"]
    assert step.ledger.losses() == [
        "3 NVTX ranges or marks have no text of their own: there are too many different ones"
    ]
    with collector.trace() as step:
        nvtx.RangePushA(b"in the next trace")
        nvtx.RangePop()
    assert ranges(step) == ["in the next trace"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_records_nothing_and_goes_on(gpu, nvtx):
    with collector.trace() as step:
        nvtx.RangePushA(b"parent's")
        child = os.fork()
        if child == 0:
            good = nvtx.RangePushA(b"child's") == NOT_TRACKED and nvtx.RangePop() == NOT_TRACKED
            os._exit(0 if good and nvtx.DomainCreateA(b"of the child") else 1)
        assert os.waitpid(child, 0)[1] == 0
        nvtx.RangePop()
    assert ranges(step) == ["parent's"]


@pytest.mark.medium
def test_ranges_reach_a_journal_with_their_paths(gpu, nvtx, tmp_path):
    journal = tmp_path / "step.journal"
    with collector.trace(journal=journal):
        for _ in range(3):
            nvtx.RangePushA(b"outer")
            nvtx.RangePushA(b"inner")
            gpu.launch("kernel")
            nvtx.RangePop()
            nvtx.RangePop()
        gpu.synchronize()
        while True:  # the test's time limit ends the wait
            with contextlib.suppress(InvalidFileError):  # its first frame is being written
                read = load_journal(journal, journal.read_bytes())
                if len(read.kernels) == 3:
                    break
            time.sleep(0.01)
    assert [each.name for each in read.annotations] == ["outer", "outer/inner"] * 3
    assert {kernel.annotation for kernel in read.kernels} == {"outer/inner"}


def test_a_range_across_an_await_gives_the_name_of_its_task_to_no_other(gpu, nvtx):
    async def request():
        with collector.annotate("request"):
            nvtx.RangePushA(b"decode")
            gpu.launch("before")
            await asyncio.sleep(0)
            gpu.launch("after")
            with collector.annotate("last"):
                gpu.launch("inner")
            nvtx.RangePop()
            gpu.launch("end")

    async def stranger():
        gpu.launch("stranger")

    async def both():
        await asyncio.gather(request(), stranger())

    with collector.trace() as step:
        asyncio.run(both())
    assert kernels(step) == {
        "before": "request/decode",
        "stranger": "",
        "after": "request/decode",
        "inner": "request/decode/last",
        "end": "request",
    }
    assert step.ledger.nvtx_ranges_suspended == 1
    assert not step.ledger.complete


def test_ranges_and_annotations_across_an_await_are_where_they_were(gpu, nvtx):
    async def task(name):
        with collector.annotate(name):
            nvtx.RangePushA(b"range")
            with collector.annotate("inner"):
                await asyncio.sleep(0)
                gpu.launch(name)
            nvtx.RangePop()

    async def in_turn():
        await task("first")
        await asyncio.gather(asyncio.sleep(0), task("second"))

    with collector.trace() as step:
        asyncio.run(in_turn())
    assert kernels(step) == {"first": "first/range/inner", "second": "second/range/inner"}


@pytest.mark.parametrize("ends", [True, False], ids=["ended between the traces", "open still"])
@pytest.mark.parametrize("of_annotation", [False, True], ids=["range", "annotation"])
def test_what_an_earlier_trace_left_open_is_no_loss_of_a_later_one(gpu, nvtx, ends, of_annotation):
    left_open = collector.annotate("epoch")
    with collector.trace() as first:
        if of_annotation:
            left_open.__enter__()
        else:
            nvtx.RangePushA(b"epoch")
        gpu.launch("kernel")
    if ends and of_annotation:
        left_open.__exit__(None, None, None)
    elif ends:
        nvtx.RangePop()
    with collector.trace() as second:
        gpu.launch("kernel")
        with collector.annotate("own"):
            gpu.launch("named")
    if not ends and of_annotation:
        left_open.__exit__(None, None, None)
    elif not ends:
        nvtx.RangePop()
    assert kernels(first) == {"kernel": "epoch"}
    assert kernels(second) == {"kernel": "", "named": "own"}
    assert first.ledger.losses() == second.ledger.losses() == []


@pytest.mark.medium
def test_ranges_that_are_never_ended_cost_later_calls_nothing(gpu, nvtx):
    """A program that forgets to end them would pay for all of them in every call: with 4000, 20 times as much."""

    def call_ns() -> float:
        begin = time.perf_counter_ns()
        for _ in range(1_000):
            nvtx.RangePushA(b"range")
            nvtx.RangePop()
        return (time.perf_counter_ns() - begin) / 1_000

    with collector.trace():
        before = min(call_ns() for _ in range(5))
        for _ in range(4_000):
            nvtx.RangePushA(b"never ended")
        after = min(call_ns() for _ in range(5))
        for _ in range(4_000):
            nvtx.RangePop()
    assert after < 4 * before


@pytest.mark.medium
def test_ranges_that_are_never_ended_take_bounded_memory(gpu, nvtx):
    """Each is inside all those before, so that their paths would take a gigabyte."""
    with collector.trace() as step:
        for _ in range(16_000):
            nvtx.RangePushA(b"iteration")
        for _ in range(16_000):
            assert nvtx.RangePop() >= 0
        assert nvtx.RangePop() == NOT_TRACKED
        gpu.launch("after")
    assert kernels(step) == {"after": ""}
    assert step.ledger.source_counters["nvtx_ranges_lost"] == 16_000 - 4096
    assert sum(map(len, step.recording.strings)) < 1 << 20
    assert step.ledger.source_counters["names_cut"] == 4096 - 409


SELECTIONS = [None, True, False, ("other",), ("", "other")]
HAS_DEFAULT = {None: True, True: True, False: False, ("other",): False, ("", "other"): True}


@pytest.mark.parametrize("inner", SELECTIONS)
def test_a_trace_in_a_recorder_does_not_choose_the_domains_of_the_recording(gpu, nvtx, tmp_path, inner):
    def launch(name: str) -> None:
        nvtx.RangePushA(name.encode())
        gpu.launch(name)
        nvtx.RangePop()

    nvtx.DomainCreateA(b"other")
    with collector.record(folder=tmp_path / "dumps", strict=True) as recorder:
        launch("before")
        with collector.trace(nvtx=inner, strict=True) as step:
            launch("inside")
        launch("after")
        gpu.synchronize()
        dump = recorder.dump()
    assert kernels(step) == {"inside": "inside"}
    recorded = collector.load(dump.journal)
    assert kernels(recorded) == {name: name for name in ("before", "inside", "after")}
    assert recorded.ledger.losses() == []


def test_a_trace_in_a_recorder_names_the_domains_that_are_absent(gpu, nvtx, tmp_path):
    nvtx.DomainCreateA(b"other")
    with (
        collector.record(folder=tmp_path / "dumps", strict=True),
        pytest.warns(collector.CollectorWarning, match="no NVTX domain named 'absent' was seen"),
        collector.trace(nvtx=["absent", "other"]) as step,
    ):
        gpu.launch("kernel")
    assert step.recording.environment["nvtx_absent"] == "absent"


@pytest.mark.medium
@settings(deadline=None, max_examples=20)
@given(
    outer=st.sampled_from(SELECTIONS),
    refused=st.lists(st.one_of(st.just("record"), st.sampled_from(SELECTIONS)), max_size=4),
)
def test_sessions_that_are_refused_do_not_choose_the_domains_of_the_open_one(nvtx, tmp_path_factory, outer, refused):
    nvtx.DomainCreateA(b"other")
    with SimulatedGpu() as gpu, collector.trace(nvtx=outer) as step:
        for number, selection in enumerate(["first", *refused]):
            if selection == "record":
                with pytest.raises(CollectorError):
                    collector.record(folder=tmp_path_factory.mktemp("dumps"), strict=True)
            elif selection != "first":
                with pytest.raises(CollectorError), collector.trace(nvtx=selection, strict=True):
                    pass
            nvtx.RangePushA(b"range")
            gpu.launch(f"kernel {number}")
            nvtx.RangePop()
    expected = "range" if HAS_DEFAULT[outer] else ""
    assert kernels(step) == {f"kernel {number}": expected for number in range(len(refused) + 1)}


@pytest.mark.medium
@pytest.mark.parametrize("stream", [False, True])
def test_a_warning_that_is_an_error_comes_after_the_results(gpu, nvtx, tmp_path, stream):
    """Tests turn warnings into errors."""
    options = {"journal": tmp_path / "journal", "stream": True} if stream else {}
    with (
        pytest.raises(collector.CollectorWarning, match="no NVTX domain named 'absent' was seen"),
        collector.trace(tmp_path / "step.json", nvtx=["absent"], **options) as step,
    ):
        gpu.launch("kernel")
    assert kernels(step) == {"kernel": ""}
    assert kernels(collector.load(tmp_path / "step.json")) == {"kernel": ""}


def test_a_named_thread_does_not_lose_a_step_in_which_the_operating_system_is_replaced(gpu, nvtx, monkeypatch):
    nvtx.NameOsThreadA(threading.get_native_id(), b"feeder")
    try:
        with collector.trace(strict=True) as step:
            gpu.launch("kernel")
            monkeypatch.setattr(os, "name", "nt")
    finally:
        monkeypatch.undo()
        nvtx.NameOsThreadA(threading.get_native_id(), b"")
    assert step.recording.kernels.names() == ["kernel"]
    assert step.recording.environment["thread_names"][threading.get_native_id()] == "feeder"
