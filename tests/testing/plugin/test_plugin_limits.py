"""Limits: their notation, their evaluation, and the messages of failures."""

import re

import pytest

from collector.testing.plugin import _MARKERS
from collector.testing.plugin.figures import NUMBERS, Figures, figures_of
from collector.testing.plugin.limits import LIMITS, LimitError, judge, parse_limits, show
from collector.testing.plugin.messages import columns, excess_message


@pytest.mark.parametrize(
    ("limits", "maximum"),
    [
        ({"kernels": 12}, 12),
        ({"memcpy_htod_bytes": 0}, 0),
        ({"memcpy_bytes": "16MiB"}, 16 << 20),
        ({"memcpy_bytes": "1.5 kB"}, 1500),
        ({"memset_bytes": "7B"}, 7),
        ({"device_time": "250us"}, 250_000),
        ({"device_time": "0.25 ms"}, 250_000),
        ({"kernel_time": "3µs"}, 3_000),
        ({"kernel_time": "2s"}, 2_000_000_000),
        ({"device_time": "40ns"}, 40),
    ],
)
def test_a_limit_is_a_count_bytes_or_a_time_with_its_unit(limits, maximum):
    (limit,) = parse_limits(limits)
    assert (limit.name, limit.maximum) == (next(iter(limits)), maximum)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"kernel": 1}, "unknown limit 'kernel': choose from kernels,"),
        ({"kernels": -1}, "kernels=-1: it must not be negative"),
        ({"kernels": "12"}, "kernels='12': it must be a whole number"),
        ({"kernels": 1.5}, "kernels=1.5: it must be a whole number"),
        ({"kernels": True}, "kernels=True: it must be a whole number"),
        ({"memcpy_bytes": "16 megs"}, "unknown unit 'megs', use one of B, KiB"),
        ({"memcpy_bytes": "-1MiB"}, "it must not be negative"),
        ({"memcpy_bytes": "lots"}, "memcpy_bytes='lots': it must be written as 4096 or"),
        ({"device_time": 250}, 'device_time=250: it must be written as "250us"'),
        ({"device_time": "250"}, "device_time='250' has no unit: use one of ns, us, ms, s"),
        ({"device_time": "1 h"}, "unknown unit 'h'"),
        ({"streams": None}, "streams=None: it must be a whole number"),
    ],
)
def test_a_limit_that_cannot_be_is_refused_in_one_line(limits, message):
    with pytest.raises(LimitError) as refused:
        parse_limits(limits)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_every_limit_has_a_figure_and_every_figure_but_frees_can_be_limited():
    assert {kind.figure for kind in LIMITS.values()} == set(NUMBERS) - {"frees"}


def test_the_help_of_the_marker_names_every_limit():
    (described,) = (each for each in _MARKERS if each.startswith("gpu_limits("))
    names = described.rpartition(": ")[2].rstrip(".").split(", ")
    assert [re.sub("=.*", "", name) for name in names] == list(LIMITS)


def test_a_limit_that_is_just_reached_is_kept():
    limits = parse_limits({"kernels": 2, "device_time": "1us", "streams": 1})
    assert judge(limits, Figures(kernels=2, device_time_ns=1000, streams=1)) == []
    (excess,) = judge(limits, Figures(kernels=2, device_time_ns=1001, streams=1))
    assert (excess.limit.name, excess.measured, excess.over) == ("device_time", 1001, 1)


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (1234, "count", "1,234"),
        (1, "bytes", "1 byte"),
        (4096, "bytes", "4,096 bytes"),
        (999, "time", "999 ns"),
        (250_000, "time", "250 µs"),
        (1_234_567, "time", "1.235 ms"),
        (100_000_000_000, "time", "100 s"),
    ],
)
def test_figures_are_shown_for_people(value, unit, shown):
    assert show(value, unit) == shown


@pytest.fixture
def step(build):
    """Two streams that overlap, all kinds of copies, a failed allocation, a stream's wait, a host's wait."""
    build.launch(1, 0).kernel("_Z3addPf", 1000, 2000, correlation_id=1)
    build.launch(2, 600).kernel("mul", 2000, 2000, correlation_id=2, stream_id=8)
    build.annotation("layer1/conv", 0, 5000, 77, 1)
    for start, kind in enumerate((1, 2, 8, 10), 3):
        build.memcpy(start * 10_000, 100, copy_kind=kind, num_bytes=10**kind, device_id=kind == 10)
    build.memset(80_000, 50, num_bytes=3)
    build.call("cudaMalloc_v3020", 81_000, correlation_id=50).call("cuMemAlloc_v2", 81_100, 100, correlation_id=50)
    build.call("cudaMalloc_v3020", 82_000, correlation_id=51, return_value=2)
    build.call("cudaMallocHost_v3020", 83_000, correlation_id=52)
    build.call("cudaFree_v3020", 84_000, correlation_id=53)
    for kind in (2, 3, 4):
        build.raw("synchronizations", start_ns=build.clock["cupti_start_ns"] + 90_000, sync_type=kind,
                  end_ns=build.clock["cupti_start_ns"] + 90_010)  # fmt: skip
    return build.recording()


def test_figures_of_a_step(step):
    figures = figures_of([step])
    assert figures.losses == ()
    assert figures.as_dict() == {
        "device_time_ns": 3000 + 4 * 100 + 50,  # the kernels overlap by 1000
        "kernel_time_ns": 4000,
        "kernels": 2,
        "launches": 2,
        "memcpys": 4,
        "memcpy_bytes": 10 + 10**2 + 10**8 + 10**10,
        "memcpy_htod_bytes": 10,
        "memcpy_dtoh_bytes": 10**2,
        "memcpy_dtod_bytes": 10**8,
        "memcpy_ptop_bytes": 10**10,
        "memsets": 1,
        "memset_bytes": 3,
        "synchronizations": 2,
        "allocations": 1,
        "frees": 1,
        "streams": 3,
        "devices": 2,
    }


def test_figures_of_two_recordings_add_up_but_for_the_streams_both_used(step):
    twice = figures_of([step, step])
    assert (twice.kernels, twice.allocations, twice.device_time_ns) == (4, 2, 6900)
    assert (twice.streams, twice.devices) == (3, 2)
    assert Figures().used_gpu is False
    assert twice.used_gpu is True


def test_losses_are_passed_on_once(build):
    build.counters["records_dropped"] = 3
    lossy = build.recording()
    (loss,) = figures_of([lossy, lossy]).losses
    assert loss.startswith("CUPTI dropped 3 records")


def test_the_message_says_excess_what_ran_and_where_from(step):
    excesses = judge(parse_limits({"kernels": 1, "memcpy_htod_bytes": 0, "streams": 5}), figures_of([step]))
    message = excess_message("the call of test_step", excesses, [step], None).splitlines()
    assert message[:5] == [
        "GPU limits exceeded in the call of test_step",
        "",
        "  limit              measured  at most  too much",
        "  kernels                   2        1         1",
        "  memcpy_htod_bytes  10 bytes  0 bytes  10 bytes",
    ]
    assert "  add                        1    2 µs    2 µs" in message
    assert "  memcpy DtoD                1  100 ns  100 ns     100,000,000" in message
    assert "  stream wait for event      1   10 ns   10 ns" in message
    assert message[-1] == "  layer1/conv  not known  1 x add"
    assert message[-2].startswith("  -            not known  1 x mul, 1 x memcpy HtoD")
    assert message[-2].endswith(", ...")


def test_rows_are_aligned_where_characters_are_wide():
    text = columns(("name", "count"), [("\u65e5\u672c\u8a9e", "1"), ("e\u0301", "22")])
    assert text.splitlines() == ["  name    count", "  \u65e5\u672c\u8a9e      1", "  e\u0301          22"]


def test_rows_beyond_what_is_readable_are_counted():
    text = columns(("name", "count"), [(f"kernel{i}", str(i)) for i in range(18)])
    assert text.splitlines()[0] == "  name      count"
    assert text.splitlines()[1] == "  kernel0       0"
    assert text.splitlines()[-1] == "  ... and 3 more"
