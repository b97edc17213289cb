"""TensorFlow 2.21's own answers: TensorFlow's timeline must give each of them to the byte."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
from pathlib import Path

import pytest
from reference.in_python import use_python

from collector.protos import RunMetadata, StepStats
from collector.stepstats.wire import is_run_metadata
from collector.timeline import Timeline

SHARED = Path(os.environ.get("COLLECTOR_SHARED") or Path(__file__).parents[2].parent / "shared")
ORACLE = SHARED / "data" / "tf"
EXPECTED_CASES = 255


def read(relative_path):
    data = (ORACLE / relative_path).read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def timeline_cases():
    if not (ORACLE / "manifest.json").exists():
        return []
    manifest = json.loads((ORACLE / "manifest.json").read_bytes())
    return [case for case in manifest["cases"] if case["kind"] == "timeline"]


@pytest.fixture(params=["python", "native"])
def timeline_backend(request, monkeypatch):
    """Runs a test with the readable implementation and with the extension."""
    if request.param == "python":
        use_python(monkeypatch)
    return request.param


CASES = timeline_cases()
needs_goldens = pytest.mark.skipif(
    not CASES, reason=f"TENSORFLOW'S GOLDEN TIMELINES ARE NOT HERE ({ORACLE}): set COLLECTOR_SHARED to have them tested"
)


@needs_goldens
def test_all_golden_cases_are_found():
    assert len(CASES) == EXPECTED_CASES


def with_each_backend(cases):
    """Every case with both; the large steps take seconds, above all with the readable implementation."""

    def marks(name, case):
        if "large" in case["id"]:
            return [pytest.mark.exhaustive if name == "python" else pytest.mark.slow]
        return [pytest.mark.slow] if name == "python" and "gru" in case["id"] else []

    return pytest.mark.parametrize(
        ("timeline_backend", "case"),
        [
            pytest.param(
                name,
                case,
                id=f"{name}-{case['id'].removeprefix('timeline/')}",
                marks=marks(name, case),
            )
            for name in ("native", "python")
            for case in cases
        ],
        indirect=["timeline_backend"],
    )


@needs_goldens
@with_each_backend(CASES)
def test_equals_tensorflow(case, timeline_backend):
    data = read(case["inputs"]["step_stats"])
    message = parse(data)
    before = message.SerializeToString(deterministic=True)
    source = message if timeline_backend == "python" else data
    calls = case["options"].get("sequence", [case["options"]])

    timeline = Timeline(source)
    if "error" in case:
        assert case["error"]["type"] == "ValueError"
        with pytest.raises(ValueError, match=f"^{re.escape(case['error']['message'])}$"):
            timeline.generate_chrome_trace_format(**calls[0])
        return
    text = [timeline.generate_chrome_trace_format(**call) for call in calls][-1]

    if "golden" in case:
        assert text == read(case["golden"]).decode()
    if "sha256_of_text" in case:
        assert hashlib.sha256(text.encode()).hexdigest() == case["sha256_of_text"]
    assert "golden" in case or "sha256_of_text" in case
    assert message.SerializeToString(deterministic=True) == before


@needs_goldens
@with_each_backend([case for case in CASES if "allocator_maximums" in case])
def test_allocator_maximums_equal_tensorflow(case, timeline_backend):
    maximums = Timeline(read(case["inputs"]["step_stats"])).analyze_step_stats(**case["options"]).allocator_maximums
    if case["allocator_maximums"] is not None:
        assert {
            allocator: {"timestamp": m.timestamp, "num_bytes": m.num_bytes, "tensors": sorted(m.tensors)}
            for allocator, m in maximums.items()
        } == case["allocator_maximums"]
    else:
        assert {
            allocator: {
                "timestamp": m.timestamp,
                "num_bytes": m.num_bytes,
                "n_tensors": len(m.tensors),
                "sha256_of_sorted_tensors": hashlib.sha256("\n".join(sorted(m.tensors)).encode()).hexdigest(),
            }
            for allocator, m in maximums.items()
        } == case["allocator_maximums_digest"]


@needs_goldens
def test_compact_text_has_the_same_events(timeline_backend):
    data = read(next(case["inputs"]["step_stats"] for case in CASES if "gpu_mid" in case["id"]))
    analysis = Timeline(data).analyze_step_stats(show_memory=True)
    compact = analysis.chrome_trace.format_to_string(pretty=False)
    assert json.loads(compact) == json.loads(analysis.chrome_trace.format_to_string(pretty=True))
    assert compact == json.dumps(json.loads(compact), separators=(",", ":"))


@pytest.mark.medium
@needs_goldens
def test_message_type_is_recognised_by_its_bytes():
    for case in CASES:
        expected = case["inputs"]["step_stats_type"] != "StepStats"
        assert is_run_metadata(read(case["inputs"]["step_stats"])) is expected, case["id"]


def parse(data):
    return RunMetadata.FromString(data) if is_run_metadata(data) else StepStats.FromString(data)
