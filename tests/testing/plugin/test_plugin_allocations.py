"""Allocations that a test did not free: from CUPTI's records, and from API calls where records are missing."""

import pytest

from collector.testing.plugin.allocations import unfreed
from collector.testing.plugin.figures import figures_of
from collector.testing.plugin.limits import judge, parse_limits
from collector.testing.plugin.messages import excess_message

ALLOCATE, RELEASE = 1, 2
DEVICE, PINNED, MANAGED, VARIABLE = 3, 2, 5, 6


class Program:
    """Allocates and frees in a capture; every call 100 ns after the one before."""

    def __init__(self, build, start_ns):
        self.build, self.start_ns = build, start_ns
        self.at = self.calls = 0

    def call(self, name, *, return_value=0):
        self.at += 100
        self.calls += 1
        self.build.call(name, self.at, 50, correlation_id=self.calls, return_value=return_value)
        return self.calls

    def operation(self, operation, correlation, address, num_bytes=0, kind=DEVICE):
        self.build.raw(
            "memory_operations", start_ns=self.start_ns + self.at + 10, operation=operation, memory_kind=kind,
            address=address, num_bytes=num_bytes, correlation_id=correlation,
        )  # fmt: skip

    def malloc(self, address, num_bytes=100, *, name="cudaMalloc_v3020", kind=DEVICE, recorded=True):
        correlation = self.call(name)
        if recorded:
            self.operation(ALLOCATE, correlation, address, num_bytes, kind)

    def free(self, address, *, name="cudaFree_v3020", kind=DEVICE, recorded=True):
        correlation = self.call(name)
        if recorded:
            self.operation(RELEASE, correlation, address, kind=kind)


@pytest.fixture
def program(build, start_ns):
    return Program(build, start_ns)


def addresses(found):
    return [allocation.address for allocation in found.allocations]


def test_freed_memory_is_recognised_by_its_address(program):
    for address in (512, 1024, 2048):
        program.malloc(address, address)
    program.free(1024)
    found = unfreed([(program.build.recording(), True)], None)
    assert addresses(found) == [512, 2048]
    assert (found.count, found.num_bytes) == (2, 2560)
    assert [line.split() for line in found.lines()] == [
        ["address", "bytes", "device", "call", "annotation", "line"],
        ["0x800", "2,048", "0", "cudaMalloc", "-", "not", "known"],
        ["0x200", "512", "0", "cudaMalloc", "-", "not", "known"],
    ]


def test_an_address_that_is_used_again_is_another_allocation(program):
    program.malloc(512, 1)
    program.free(512)
    program.malloc(512, 2)
    found = unfreed([(program.build.recording(), True)], None)
    assert [allocation.num_bytes for allocation in found.allocations] == [2]


def test_what_is_freed_later_counts_and_what_is_allocated_later_does_not(build, start_ns, fake_source):
    first, later = Program(build, start_ns), Program(type(build)(), start_ns)
    first.malloc(512)
    first.malloc(1024)
    later.malloc(2048)
    later.free(512)
    found = unfreed([(first.build.recording(), True), (later.build.recording(), False)], None)
    assert addresses(found) == [1024]


def test_only_memory_that_the_program_takes_from_a_device_counts(program):
    program.malloc(512, kind=MANAGED, name="cudaMallocManaged_v6000")
    program.malloc(1024, kind=PINNED, name="cudaHostAlloc_v3020")
    program.malloc(2048, kind=VARIABLE, name="cudaLaunchKernel_v7000")
    recording = program.build.recording()
    assert addresses(unfreed([(recording, True)], None)) == [512]
    assert figures_of([recording]).allocations == 1


def test_a_free_of_what_was_there_before_hides_no_leak(program):
    program.free(64)
    program.malloc(512)
    assert addresses(unfreed([(program.build.recording(), True)], None)) == [512]


def test_calls_without_records_are_counted(program):
    program.malloc(0, name="cuMemCreate", recorded=False)
    program.malloc(0, name="cuMemCreate", recorded=False)
    program.free(0, name="cuMemRelease", recorded=False)
    found = unfreed([(program.build.recording(), True)], None)
    assert (found.count, found.allocations) == (1, ())
    assert found.lines() == [
        "2 x cuMemCreate at a line that is not known",
        "minus freed allocations: 1",
    ]


def test_calls_that_balance_are_no_leak_nor_is_a_free_of_nothing(program):
    program.malloc(0, recorded=False)
    program.free(0, recorded=False)
    program.free(0, recorded=False)  # cudaFree(0) is how many programs initialise CUDA
    found = unfreed([(program.build.recording(), True)], None)
    assert (found.count, found.lines()) == (0, [])


def test_a_free_of_nothing_does_not_stand_against_an_allocation(program):
    program.free(0, recorded=False)
    program.malloc(512)
    assert unfreed([(program.build.recording(), True)], None).count == 1


def test_an_allocation_is_counted_once_whether_a_call_or_a_record_or_both_state_it(program):
    program.malloc(512)  # both
    program.malloc(0, name="cuMemCreate", recorded=False)  # CUPTI does not record it
    program.malloc(1024, name="cudaNewWayToAllocate_v99")  # a call that this version does not know
    failed = program.call("cudaMalloc_v3020", return_value=2)
    assert failed == 4
    figures = figures_of([program.build.recording()])
    assert (figures.allocations, figures.frees) == (3, 0)


def test_a_limit_on_allocations_shows_calls_and_bytes(program):
    with_annotation = program.call("cudaMalloc_v3020")
    program.operation(ALLOCATE, with_annotation, 512, 4096)
    program.build.annotation("layer1", 0, 5000, 7, with_annotation)
    program.malloc(1024, 100, name="cudaNewWayToAllocate_v99")
    recording = program.build.recording()
    text = excess_message(
        "a step", judge(parse_limits({"allocations": 1}), figures_of([recording])), [recording], None
    ).splitlines()
    assert "  allocations         2        1         1" in text
    assert [line.split() for line in text if line.startswith("  cuda")] == [
        ["cudaMalloc", "1", "50", "ns", "50", "ns", "4,096"],
        ["cudaNewWayToAllocate", "1", "0", "ns", "0", "ns", "100"],
    ]
    assert any(line.split()[:1] == ["layer1"] for line in text)
