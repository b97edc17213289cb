"""Names from real PyTorch programs on the CPU, by one line each."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from programs import results_of

pytest.importorskip("collector._native", reason="the native extension is not built")
if find_spec("torch") is None:
    pytest.skip("NO ADAPTER WAS TRIED BESIDE PYTORCH: it is not installed", allow_module_level=True)
pytestmark = [pytest.mark.simulator, pytest.mark.slow]

FORWARD = ["Net/first:forward", "Net/layers/0:forward", "Net/layers/1:forward", "Net:forward"]
BACKWARD = [
    "Net/backward:backward",
    "Net/layers/1/backward:backward",
    "Net/layers/0/backward:backward",
    "Net/first/backward:backward",
]


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    """What each scenario of `torch_programs.py` saw."""
    return results_of(str(Path(__file__).with_name("torch_programs.py")))


def test_modules_name_their_forward_and_backward_passes(seen):
    assert seen["named"] == FORWARD + BACKWARD


def test_paths_of_modules_nest_in_the_annotations_of_the_program(seen):
    forward = ["step/net/first", "step/net/layers/0", "step/net/layers/1", "step/net"]
    assert seen["inside_an_annotation"] == [f"{path}:forward" for path in forward] + ["step:backward"] * 4


def test_all_modules_have_names_from_their_first_call_on(seen):
    names, again, hooks = seen["all_modules"]
    assert names == [*FORWARD, *BACKWARD, "second:forward"]
    assert again == FORWARD
    assert hooks == 0


def test_removed_hooks_leave_nothing_behind(seen):
    assert seen["removed"] == [["backward:backward", "forward:forward"], 0]


def test_a_module_that_raises_is_left(seen):
    assert seen["failing"] == [*FORWARD[:2], "after:after", *FORWARD]


def test_passes_after_an_interrupted_one_have_their_names(seen):
    """PyTorch calls no hook of a module that Ctrl-C leaves."""
    whole = ["Interrupted/part:forward", "Interrupted/other:forward", "Interrupted/other/backward:backward"]
    *same, annotated, still_entered = seen["interrupted"]
    assert same == [whole] * 3
    assert annotated == ["after:after", *(f"step/{name}" for name in whole[:2]), "after:after"]
    assert still_entered == 0


def test_a_module_that_goes_on_after_an_interrupted_part_names_its_other_parts(seen):
    assert seen["interrupted_inside"] == ["Interrupted/other:forward", "Interrupted/other/backward:backward"]


def test_a_pass_after_a_failed_step_of_an_optimizer_has_its_names(seen):
    assert seen["failed_step"] == ["Block:forward"] * 2


def test_the_filter_of_pytorchs_warning_is_removed_with_the_names(seen):
    assert seen["filters"] == [1, 1, True]


def test_the_backward_pass_of_an_earlier_trace_has_its_names(seen):
    assert seen["two_traces"] == [FORWARD, BACKWARD]


def test_a_named_model_is_untouched_and_can_be_loaded_elsewhere(seen):
    is_as_before, names_us, of_copies = seen["untouched"]
    assert is_as_before
    assert not names_us
    assert of_copies == ["first:forward", "forward:forward", "forward:forward"]  # copies are other models


def test_replicas_have_the_names_of_their_model(seen):
    """`torch.nn.DataParallel` makes new ones at each call."""
    of_model, of_all, still_known = seen["replicated"]
    assert of_model == of_all == FORWARD * 3
    assert still_known == 0


def test_a_part_has_the_name_that_it_was_given_last_until_that_is_removed(seen):
    assert seen["renamed"] == [["Net/part:forward", "part/backward:backward", "Net/first:forward"]] * 2


def test_a_part_that_was_called_first_is_named_with_its_model(seen):
    assert seen["part_first"] == ["Block:forward", *FORWARD]


def test_modules_that_the_program_drops_are_forgotten(seen):
    assert seen["forgotten"] == [True, -1]


def test_an_error_of_a_name_leaves_the_module_without_one(seen):
    assert seen["odd"] == ["forward:forward", "Returns:forward", "Block:forward"]


def test_modules_of_torchscript_are_calls_and_can_be_made_of_named_models(seen):
    paths, of_model, same = seen["scripted"]
    assert paths == ["Sequential", "Scripted", "Scripted/inner"]
    assert of_model == ["model:forward"]
    assert same == [True, True]


def test_a_compiled_program_is_the_same_with_hooks_and_in_a_trace(seen):
    calls = seen["compiled"]
    assert len(calls) == 2 * 5
    for without, *with_hooks in (calls[:5], calls[5:]):
        assert with_hooks == [without, [], without, []]  # no warning


def test_a_compiled_model_has_a_name_as_a_whole(seen):
    named, renamed, as_any = seen["compiled_names"]
    assert named == ["Compiled:compiled"] * 2
    assert renamed == ["net:compiled"] * 2
    assert as_any == ["Compiled:compiled"] * 2


def test_batches_and_steps_of_optimizers_have_names_until_the_hooks_are_removed(seen):
    paths, is_as_before = seen["training"]
    assert paths == ["DataLoader.next", "SGD.step"] * 2 + ["DataLoader.next"]
    assert is_as_before


def test_a_program_and_a_library_that_name_steps_name_them_once(seen):
    with_both, with_one, with_none, is_as_before, below_another_wrapper, again = seen["training_named_twice"]
    assert with_both == with_one == again == ["DataLoader.next", "SGD.step", "DataLoader.next"]
    assert with_none == below_another_wrapper == []
    assert is_as_before


def test_a_step_that_raised_ends_with_the_next_step_or_batch_or_the_hooks(seen):
    kernels, paths, inside = seen["failing_steps"]
    assert kernels == [
        "after_batch:after_batch",
        "Adam.step:other",
        "after_step:after_step",
        "after_hooks:after_hooks",
    ]
    assert paths == ["SGD.step", "DataLoader.next", "SGD.step", "Adam.step", "SGD.step"]
    assert inside == ["SGD.step/Adam.step:inner", "SGD.step:outer"]


def test_a_compiled_step_is_the_same_with_hooks(seen):
    without, with_hooks = seen["compiled_step"]
    assert without == with_hooks == 1


def test_ops_have_names_shapes_and_links_to_their_backward_passes(seen):
    if isinstance(seen["ops"], str):  # this build emits no ranges
        assert "without CUDA" in seen["ops"]
        pytest.skip("NO OP OF PYTORCH WAS NAMED: this build was made without CUDA")
    shapes, sequence = seen["ops"]["addmm"]
    assert shapes.startswith("[[4], [2, 4], [4, 4]")
    assert sequence > 0
    node = "autograd.engine.evaluate_function. LaunchBackward"  # TensorFlow splits names at colons
    assert seen["ops"]["names"] == ["Launch:forward", f"{node}/LaunchBackward:backward"]
    assert ["aten::linear/aten::addmm", "AddmmBackward0", 1] in seen["ops"]["links"]
    assert ["Launch", "LaunchBackward", 1] in seen["ops"]["links"]
    assert [1, 1] in seen["ops"]["times"]


def test_the_history_of_the_allocator_is_counters(seen):
    series, asked = seen["memory"]
    assert series == {"allocated (torch)": [100, 128], "reserved (torch)": [2 << 20]}
    assert asked == [["all", None, "python", 1000], [None, "all", "all", 2**63 - 1]]
