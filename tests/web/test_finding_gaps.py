"""The gap that a finding about idle time leads to."""

from __future__ import annotations

import pytest

from collector import analysis
from collector.profiler.advice.step_advice import CHECKERS
from collector.web.finding_gaps import with_gaps
from collector.web.given_rows import MOST_ROWS


def finding(checker="launch_bound", line="/gpu:0 idles"):
    known = CHECKERS[checker]
    return {"checker": checker, "line": line, "rows": known.rows, "cause": known.cause}


def gaps_of(recording, *findings):
    return [each["gap"] for each in with_gaps(findings, recording)]


@pytest.fixture
def two_devices(build):
    """Gaps of 10, 30 and 20 µs on device 0 and of 50 µs on device 1, all because of the host."""
    for number, (device, start) in enumerate(
        ((0, 1000), (0, 12_000), (0, 43_000), (0, 64_000), (1, 1000), (1, 52_000))
    ):
        build.call("cudaLaunchKernel_v7000", start - 10, 5, correlation_id=number + 1)
        build.kernel("gemm", start, 1000, correlation_id=number + 1, device_id=device)
    build.clock["cupti_stop_ns"] = build.clock["cupti_start_ns"] + 65_000
    return build.recording()


def test_it_is_the_longest_of_the_cause_on_the_device_of_the_finding(two_devices):
    lines = ["/gpu:0 idles", "/gpu:1 idles", "idle"]
    found = gaps_of(two_devices, *(finding(line=line) for line in lines))
    assert found == [(13_000, 43_000), (2000, 52_000), (2000, 52_000)]


def test_there_is_none_where_no_gap_has_the_cause_or_the_finding_is_about_none(two_devices):
    others = [finding("draining_synchronizations"), finding(line="/gpu:7 idles"), finding("small_grids")]
    assert gaps_of(two_devices, *others) == [None] * 3


def test_a_whole_graph_ends_a_gap(two_devices, build):
    build.call("cudaGraphLaunch_v10000", 19_990, 5, correlation_id=7)
    recording = build.whole_graph(20_000, 20_000, correlation_id=7).recording()
    assert gaps_of(recording, finding(), finding(line="/gpu:1 idles")) == [(44_000, 64_000), (2000, 52_000)]


def test_it_may_be_shorter_than_all_gaps_that_a_page_is_given(build):
    """A gap of the host, and more longer ones of dependencies than a page takes."""
    for number in range(MOST_ROWS + 2):
        build.call("cudaLaunchKernel_v7000", number, 1, correlation_id=number + 1)
        build.kernel("gemm", 10_000 * number + 6000, 1000, correlation_id=number + 1)
    end = 10_000 * (MOST_ROWS + 1) + 7000
    build.call("cudaLaunchKernel_v7000", end + 5000, 1, correlation_id=9_000)
    build.kernel("gemm", end + 5500, 1000, correlation_id=9_000)
    build.clock["cupti_stop_ns"] = build.clock["cupti_start_ns"] + end + 6500
    recording = build.recording()
    assert (analysis.idle_gaps(recording)["host_ns"][:MOST_ROWS] == 0).all()
    assert gaps_of(recording, finding()) == [(end, end + 5500)]
