"""Traces, annotations and the profiler's adapters in real PyTorch programs, on the CPU."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest
from programs import results_of

pytest.importorskip("collector._native", reason="the native extension is not built")
if find_spec("torch") is None:
    pytest.skip("NOTHING WAS TRIED BESIDE PYTORCH: it is not installed", allow_module_level=True)
pytestmark = [pytest.mark.simulator, pytest.mark.slow]


@pytest.fixture(scope="module", params=["torch-first", "collector-first"])
def seen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each scenario of `torch_runs.py` saw, with the one or the other imported first."""
    return results_of("torch_runs.py", request.param, str(tmp_path_factory.mktemp("runs")))


def _files(*steps: int) -> dict[str, list[str]]:
    return {f"timeline-{step}.json": ["train"] for step in steps}


def test_beside_torchs_profiler_both_have_everything(seen):
    assert seen["beside_torchs_profiler"] == [[True, True, []]] * 4


def test_backward_carries_the_names_of_its_thread(seen):
    found = seen["backward_recomputes_and_threads"]
    assert found["reentrant=True"] == ["all/net/note:fused"] * 2 + ["all/gradient:fused_backward"]
    assert found["reentrant=False"] == ["all/net/note:fused", "all/gradient:fused_backward"]
    each = ["backward/gradient:fused_backward", "net/note:fused"]
    assert found["threads"] == [f"thread{number}/{name}" for number in range(3) for name in each]


def test_modules_with_annotations_are_copied_and_saved(seen):
    assert seen["modules_are_copied_and_saved"] == ["kept/net/note:fused"] * 3


def test_a_traced_step_is_the_compiled_program_that_an_untraced_one_is(seen):
    names, same_results, compilations_after_the_first_trace, graphs = seen["compiled"]
    assert names == ["outside:fused"]
    assert same_results
    assert compilations_after_the_first_trace == 0
    assert graphs == 2  # one for programs that are traced


def test_a_trace_can_be_opened_within_what_is_compiled(seen):
    assert seen["traced_within_what_is_compiled"] == [["fused"], ["fused"]]


@pytest.mark.parametrize("scenario", ["an_optimizer_tells_the_hook", "a_compiled_optimizer_tells_the_hook"])
def test_an_optimizer_calls_the_hook(seen, scenario):
    assert seen[scenario] == (_files(2, 4, 6) if scenario.startswith("an_") else _files(2, 4))


def test_loops_over_a_loader_with_workers(seen):
    files, traced, is_dumped = seen["loops_over_a_loader"]
    assert files == _files(2, 4, 6, 8)
    assert traced == [1, 6]
    assert is_dumped


def test_workers_annotate_and_their_own_trace_says_why_not(seen):
    for method, reason in (("fork", "forked from one that had used CUDA"), ("spawn", "None")):
        batches, names, message = seen["workers"][method]
        assert batches == 4
        assert names == ["step:train"] * 4
        assert reason in message[0]


def test_what_is_called_of_torch_exists(seen):
    assert seen["what_is_called_of_torch_exists"] == []


def test_cupti_was_used_as_it_may_be(seen):
    assert seen["misuse"] == {}
