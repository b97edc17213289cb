"""Programs and tools that misuse NVTX, or end in the middle of it: one line or a figure, no crash, no wrong name."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import collector
from collector import _native
from collector.testing import SimulatedGpu
from collector.tracing.nvtx import NEXT_TOOL_VARIABLE, VARIABLE
from tests.support.nvtx_copy import NOT_TRACKED, NvtxCopy, attributes

pytestmark = pytest.mark.simulator

NAME, MARKER, MARKER_DATA = 11, 12, 13
NVTX_DOMAIN = 5
MOST = 1 << 17


@pytest.mark.parametrize("api_version", [130000, None])
def test_cupti_s_own_handler_which_crashes_in_13_0_48_is_never_asked_for(
    nvtx: NvtxCopy, api_version: int | None
) -> None:
    with SimulatedGpu(cuda="13.0", api_version=api_version) as gpu:
        with collector.trace(nvtx=True, strict=True) as step:
            nvtx.RangePushA(b"range")
            nvtx.MarkA(b"mark")
            gpu.launch("kernel")
            nvtx.RangePop()
        calls = [(call.function, call.argument) for call in gpu.calls()]
    assert step.recording.kernels.annotations() == ["range"]
    enabled = {kind for function, kind in calls if function.startswith("cuptiActivityEnable")}
    assert enabled
    assert not enabled & {NAME, MARKER, MARKER_DATA}
    assert not [call for call in calls if call == ("cuptiEnableDomain", NVTX_DOMAIN)]
    assert "cuptiEnableAllDomains" not in dict(calls)


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (VARIABLE, NEXT_TOOL_VARIABLE):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("variables")
def test_a_tool_that_overwrites_the_variable_and_unsets_it_is_kept_and_answered(
    gpu: SimulatedGpu, tmp_path: Path
) -> None:
    """Proton sets the variable to its libcupti when a session of it starts, and unsets it when that ends."""
    theirs = tmp_path / "libcupti.so.12"
    theirs.touch()
    collector.nvtx.arm()
    os.environ[VARIABLE] = str(theirs)
    with collector.trace():
        gpu.launch("kernel")
        assert os.environ[VARIABLE] == _native.capture_library()
        assert os.environ[NEXT_TOOL_VARIABLE] == str(theirs)
    del os.environ[VARIABLE]
    with collector.trace():
        assert os.environ[VARIABLE] == _native.capture_library()


def test_threads_that_die_inside_ranges_leave_nothing_behind(gpu: SimulatedGpu, nvtx: NvtxCopy) -> None:
    domain = nvtx.DomainCreateA(b"of dying threads")

    def die(number: int) -> None:
        nvtx.RangePushA(b"never popped")
        nvtx.DomainRangePushEx(domain, attributes(b"nor this"))
        nvtx.RangeStartA(b"never ended")
        gpu.launch(f"kernel {number}")

    with collector.trace(strict=True) as step:
        for number in range(20):
            thread = threading.Thread(target=die, args=(number,))
            thread.start()
            thread.join()
        gpu.launch("after")
    table = step.recording.kernels
    paths = dict(zip(table.names(), table.annotations(), strict=True))
    assert paths.pop("after") == ""
    assert set(paths.values()) == {"never popped/nor this"}
    assert step.ledger.nvtx_ranges == 20
    assert step.ledger.complete


def test_a_library_that_is_loaded_again_and_again_is_known_once(nvtx: NvtxCopy) -> None:
    """Each time its copy of NVTX looks for the handler."""
    before = _native.nvtx_status()["libraries"]
    copies = [NvtxCopy(_native.capture_library()) for _ in range(100)]
    assert _native.nvtx_status()["libraries"] == before
    assert len(before) == len(set(before))
    assert copies[-1].RangePop() == NOT_TRACKED


def test_a_destroyed_domain_may_be_used_in_every_function(gpu: SimulatedGpu, nvtx: NvtxCopy) -> None:
    domain = nvtx.DomainCreateA(b"destroyed")
    nvtx.DomainDestroy(domain)
    nvtx.DomainDestroy(domain)
    with collector.trace(strict=True) as step:
        text = nvtx.DomainRegisterStringA(domain, b"text")
        nvtx.DomainNameCategoryA(domain, 1, b"category")
        nvtx.DomainRangePushEx(domain, attributes(text, category=1))
        gpu.launch("kernel")
        nvtx.DomainRangePop(domain)
        nvtx.DomainMarkEx(domain, attributes(text, category=1))
        nvtx.DomainRangeEnd(domain, nvtx.DomainRangeStartEx(domain, attributes(text)))
        nvtx.DomainDestroy(domain)
    assert step.recording.kernels.annotations() == ["text"]
    assert step.recording.annotations.texts("domain_name_id") == ["destroyed"]
    assert step.recording.nvtx_ranges.texts("category_name_id") == ["category", ""]


@pytest.mark.parametrize(
    "text", [b"x" * (1 << 20), b"\xff\xfe raw", b"\xc3", b"\x00"], ids=["1 MB", "raw", "cut", "empty"]
)
def test_odd_texts_are_kept_in_every_place(gpu: SimulatedGpu, nvtx: NvtxCopy, text: bytes, tmp_path: Path) -> None:
    expected = text.split(b"\0")[0].decode("utf-8", "backslashreplace")
    if len(expected) > 4096:
        expected = expected[:4093] + "…"
    domain = nvtx.DomainCreateA(b"of odd texts " + text)
    with collector.trace(tmp_path / "step.json", strict=True) as step:
        nvtx.DomainNameCategoryA(domain, 1, text)
        nvtx.DomainRangePushEx(domain, attributes(nvtx.DomainRegisterStringA(domain, text), category=1))
        nvtx.NameCudaStreamA(7, text)
        nvtx.NameOsThreadA(threading.get_native_id(), text)
        nvtx.MarkA(text)
        gpu.launch("kernel", stream=7)
        nvtx.DomainRangePop(domain)
    nvtx.NameOsThreadA(threading.get_native_id(), b"")
    nvtx.NameCudaStreamA(7, b"")
    (annotation,) = step.recording.annotations
    table = step.recording.annotations
    assert annotation.name == (expected or "(no name)")
    assert table.texts("category_name_id") == [expected]
    assert table.texts("domain_name_id")[0].startswith("of odd texts ")
    assert step.recording.nvtx_ranges.names() == [expected or "(no name)"]
    assert collector.load(tmp_path / "step.json").recording.annotations.names() == [expected or "(no name)"]


@pytest.mark.slow
def test_a_million_distinct_texts_are_bounded_and_counted(gpu: SimulatedGpu, nvtx: NvtxCopy) -> None:
    million = 1_000_000
    push, pop = nvtx.RangePushA, nvtx.RangePop
    with collector.trace(strict=True) as step:
        for number in range(million):
            push(b"%d" % number)
            pop()
    assert step.ledger.annotations == million
    assert len(set(step.recording.annotations.name_id.tolist())) == MOST + 1
    assert step.recording.counters["ranges_without_name"] == million - MOST


def printed_alone(program: str) -> list[str]:
    """The lines of a program in a process of its own, whose handles of strings and domains it may use up."""
    beginning = """
import collector
from collector import _native
from collector.testing import SimulatedGpu
from tests.support.nvtx_copy import NvtxCopy, attributes
nvtx = NvtxCopy(_native.capture_library())
gpu = SimulatedGpu().__enter__()
"""
    root = os.fspath(Path(__file__).resolve().parents[2])
    done = subprocess.run(
        [sys.executable, "-c", beginning + program], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_registered_strings_beyond_the_limit_are_counted_where_they_name_something() -> None:
    """The limit is that of the process: the strings may have been registered long before the trace."""
    program = f"""
domain = nvtx.DomainCreateA(b"steps")
for number in range({MOST} - 1):
    nvtx.DomainRegisterStringA(domain, b"step %d" % number)
first, many, more = (nvtx.DomainRegisterStringA(domain, text) for text in (b"step 0", b"many", b"more"))
with collector.trace(strict=True) as step:
    for string in (first, many, more):
        for _ in range(3):
            nvtx.DomainRangePushEx(domain, attributes(string))
            nvtx.DomainRangePop(domain)
        nvtx.DomainRangeEnd(domain, nvtx.DomainRangeStartEx(domain, attributes(string)))
        nvtx.DomainMarkEx(domain, attributes(string))
recording = step.recording
print(recording.annotations.names(), recording.annotations.texts("payload_text_id"))
print(recording.nvtx_ranges.names(), recording.counters["ranges_without_name"], step.ledger.complete)
"""
    shared = "(one of too many names)"
    names, ranges = printed_alone(program)
    assert names == f"{['step 0'] * 3 + [shared] * 6} {[''] * 9}"
    assert ranges == f"{['step 0'] * 2 + [shared] * 4} 10 False"


@pytest.mark.slow
def test_long_registered_strings_take_bounded_memory() -> None:
    program = """
for number in range(40_000):
    string = nvtx.DomainRegisterStringA(None, b"%05d" % number + b"x" * 4091)
    if number == 20_000:
        kept = string
with collector.trace(strict=True) as step:
    for handle in (kept, string):
        nvtx.MarkEx(attributes(handle))
print([name[:5] for name in step.recording.nvtx_ranges.names()], step.recording.counters["ranges_without_name"])
"""
    (line,) = printed_alone(program)
    assert line == "['20000', '(one '] 1"


@pytest.mark.slow
def test_ranges_of_domains_beyond_the_limit_are_counted() -> None:
    program = """
domains = [nvtx.DomainCreateA(b"domain %d" % number) for number in range(1025)]
with collector.trace(strict=True) as step:
    for domain in (domains[0], domains[1023], domains[1024]):
        nvtx.DomainRangePushEx(domain, attributes(b"range"))
        nvtx.DomainRangePop(domain)
        nvtx.DomainMarkEx(domain, attributes(b"mark"))
print(step.recording.annotations.texts("domain_name_id"), step.recording.counters["ranges_without_name"])
"""
    (line,) = printed_alone(program)
    assert line == f"{['domain 0'] + ['(one of too many names)'] * 2} 4"


@pytest.mark.medium
def test_ranges_of_categories_beyond_the_limit_are_counted() -> None:
    program = """
for number in range(1, 4098):
    nvtx.NameCategoryA(number, b"category %d" % number)
for name in (b"another", b"category 2", b"another"):
    nvtx.NameCategoryA(1, name)
def use(category):
    gpu.launch("kernel")
    nvtx.RangePushEx(attributes(b"range", category=category))
    nvtx.RangePop()
    nvtx.MarkEx(attributes(b"mark", category=category))
for categories in ((2, 4096), (1, 4097)):
    with collector.trace(strict=True) as step:
        for category in categories:
            use(category)
    recording = step.recording
    for table in (recording.annotations, recording.nvtx_ranges):
        print(table.texts("category_name_id"), recording.counters.get("ranges_without_name", 0), step.ledger.complete)
nvtx.NameCategoryA(1, b"category 2")
with collector.trace(strict=True) as step:
    use(1)
print(step.recording.annotations.texts("category_name_id"), step.ledger.complete)
"""
    whole = f"{['category 2', 'category 4096']} 0 True"
    without = f"{['1', '4097']} 4 False"
    assert printed_alone(program) == [whole, whole, without, without, f"{['category 2']} True"]


@pytest.mark.medium
def test_names_of_threads_that_have_ended_make_room_for_others() -> None:
    program = """
import threading
for number in range(3 * 4096):
    nvtx.NameOsThreadA((1 << 31) + number, b"of no thread")
nvtx.NameOsThreadA(threading.get_native_id(), b"main")
with collector.trace(strict=True) as step:
    gpu.launch("kernel")
print(step.recording.environment["thread_names"][threading.get_native_id()], step.ledger.losses())
"""
    (line,) = printed_alone(program)
    assert line == "main []"


@pytest.mark.medium
def test_names_beyond_the_limit_are_counted() -> None:
    """A program may name any number as a GPU."""
    program = """
for number in range(4096 + 3):
    nvtx.NameCudaDeviceA(number, b"name")
nvtx.NameCudaDeviceA(0, b"another name of a known one")
with collector.trace(strict=True) as step:
    gpu.launch("kernel")
print(step.recording.environment["device_labels"]["/gpu:0"], step.ledger.losses())
"""
    (line,) = printed_alone(program)
    loss = "3 names that NVTX gave threads, GPUs, contexts or streams were dropped: there are too many"
    assert line == f"another name of a known one {[loss]}"


def test_pops_and_ends_without_a_beginning_change_nothing(gpu: SimulatedGpu, nvtx: NvtxCopy) -> None:
    domain = nvtx.DomainCreateA(b"unbalanced")
    with collector.trace(strict=True) as step:
        assert nvtx.RangePop() == NOT_TRACKED
        assert nvtx.DomainRangePop(domain) == NOT_TRACKED
        nvtx.RangeEnd(0)
        nvtx.DomainRangeEnd(domain, 1 << 40)
        with collector.annotate("program's"):
            assert nvtx.RangePop() == NOT_TRACKED
            gpu.launch("kernel")
    assert step.recording.kernels.annotations() == ["program's"]


def test_a_forked_child_makes_every_call_and_returns(gpu: SimulatedGpu, nvtx: NvtxCopy) -> None:
    domain = nvtx.DomainCreateA(b"before the fork")
    with collector.trace(strict=True) as step:
        nvtx.RangePushA(b"parent's")
        child = os.fork()
        if child == 0:
            text = nvtx.DomainRegisterStringA(domain, b"text")
            nvtx.DomainNameCategoryA(domain, 1, b"category")
            nvtx.DomainRangePushEx(domain, attributes(text, category=1))
            nvtx.DomainRangePop(domain)
            nvtx.RangeEnd(nvtx.RangeStartA(b"child's"))
            nvtx.MarkA(b"child's")
            nvtx.NameOsThreadA(1, b"child's")
            os._exit(0 if nvtx.DomainCreateA(b"child's") else 1)
        assert os.waitpid(child, 0)[1] == 0
        gpu.launch("kernel")
        nvtx.RangePop()
    assert step.recording.annotations.names() == ["parent's"]
    assert len(step.recording.nvtx_ranges) == 0
