"""The time of PyTorch's ops and of their backward passes."""

from __future__ import annotations

import math

import pytest

from collector.analysis import backward

EVALUATE = "autograd::engine::evaluate_function: "


def range_of(build, path, start, duration, external, sequence, *correlations, thread=11):
    build.annotation(path, start, duration, external, *correlations)
    build.rows["annotations"][-1] |= {"op_sequence": sequence, "thread_id": thread}


@pytest.fixture
def training(build):
    """Two ops in one module, whose backward passes run on another thread in the other order."""
    ops = [
        ("net/aten::linear", 0, 50, 3, ()),
        ("net/aten::linear/aten::addmm", 10, 30, 3, (1,)),
        ("net/aten::linear/aten::addmm/aten::copy_", 15, 5, 0, (2,)),
        ("net/aten::relu", 60, 10, 4, (3,)),
    ]
    for external, (path, start, duration, sequence, correlations) in enumerate(ops, 50):
        range_of(build, path, start, duration, external, sequence, *correlations)
    nodes = [
        (f"{EVALUATE}ReluBackward0", 100, 30, 4, ()),
        (f"{EVALUATE}ReluBackward0/ReluBackward0", 105, 20, 4, ()),
        (f"{EVALUATE}ReluBackward0/ReluBackward0/aten::threshold_backward", 106, 10, 0, (4,)),
        (f"{EVALUATE}AddmmBackward0", 140, 40, 3, (5,)),
        (f"{EVALUATE}AddmmBackward0/AddmmBackward0", 145, 30, 3, (6,)),
        (f"{EVALUATE}torch::autograd::AccumulateGrad", 190, 10, 0, (7,)),
    ]
    for external, (path, start, duration, sequence, correlations) in enumerate(nodes, 70):
        range_of(build, path, start, duration, external, sequence, *correlations, thread=12)
    for correlation in range(1, 8):
        build.kernel("kernel", 300 + 10 * correlation, correlation, correlation_id=correlation)
    return build


def figures(answer):
    return [(row["path"], row["node"], row["runs"], row["forward_ns"], row["backward_ns"]) for row in answer]


def test_ops_of_the_worked_example_and_their_backward_passes(training):
    answer = backward(training.recording())
    assert figures(answer) == [
        ("net/aten::linear/aten::addmm", "AddmmBackward0", 1, 1 + 2, 5 + 6),
        ("net/aten::relu", "ReluBackward0", 1, 3, 4),
    ]
    assert answer["forward_activities"].tolist() == [2, 1]
    assert answer["backward_activities"].tolist() == [2, 1]
    assert answer["backward_ratio"].tolist() == pytest.approx([11 / 3, 4 / 3])
    assert answer.totals == {"runs": 2, "backward_activities": 3, "backward_ns": 15}
    assert answer.losses == ()
    assert answer.evidence[0]["kernels"].tolist() == [0, 1, 4, 5]


def test_a_number_is_used_again_in_the_next_iteration_of_a_thread_that_began_anew(training):
    """The op that began last counts, and a second pass through the graph counts for the same op."""
    range_of(training, f"{EVALUATE}ReluBackward0", 200, 20, 80, 4, 8, thread=12)
    range_of(training, "other/aten::relu", 250, 10, 81, 4, 9)
    range_of(training, f"{EVALUATE}ReluBackward0", 280, 10, 82, 4, 10, thread=12)
    for correlation in (8, 9, 10):
        training.kernel("kernel", 400 + 10 * correlation, correlation, correlation_id=correlation)
    assert figures(backward(training.recording())) == [
        ("net/aten::relu", "ReluBackward0", 2, 3, 4 + 8),
        ("net/aten::linear/aten::addmm", "AddmmBackward0", 1, 3, 11),
        ("other/aten::relu", "ReluBackward0", 1, 9, 10),
    ]


def test_work_outside_of_annotations_belongs_to_no_pass(training):
    """Not to that of the last annotation either."""
    range_of(training, f"{EVALUATE}ReluBackward0", 200, 20, 80, 4, 8, thread=12)
    training.kernel("kernel", 400, 1000, correlation_id=99)
    assert figures(backward(training.recording())) == [
        ("net/aten::linear/aten::addmm", "AddmmBackward0", 1, 3, 11),
        ("net/aten::relu", "ReluBackward0", 2, 3, 4),
    ]


def test_passes_of_ops_that_are_not_recorded_or_that_two_threads_numbered_alike(training):
    range_of(training, f"{EVALUATE}MulBackward0", 230, 5, 90, 9, 8, thread=12)
    range_of(training, "net/aten::relu", 60, 10, 91, 4, thread=13)
    training.kernel("kernel", 600, 100, correlation_id=8)
    answer = backward(training.recording())
    assert figures(answer) == [
        ("(not recorded)", "MulBackward0", 1, 0, 100),
        ("net/aten::linear/aten::addmm", "AddmmBackward0", 1, 3, 11),
        ("(not recorded)", "ReluBackward0", 1, 0, 4),
    ]
    assert math.isnan(answer["backward_ratio"][0])
    assert answer.losses == (
        "1 backward pass of ops that were not recorded",
        "1 backward pass whose number ops of several threads have",
    )


def test_without_numbers_there_is_no_answer(build):
    build.annotation("AddmmBackward0", 0, 10, 50, 1).kernel("kernel", 20, 10, correlation_id=1)
    assert len(backward(build.recording())) == len(backward([])) == 0


@pytest.mark.medium
def test_a_recorded_training_of_resnet50_whose_steps_are_one_after_the_other(load_trace):
    """53 convolutions and as many batch norms in each step; the trace has the time of six steps."""
    answer = backward(load_trace("kineto/v100_resnet50_workers4.json.gz"))
    conv, norm = list(answer)[:2]
    assert (conv["path"], conv["node"]) == (
        "aten::conv2d/aten::convolution/aten::_convolution/aten::cudnn_convolution",
        "CudnnConvolutionBackward",
    )
    assert norm["node"] == "CudnnBatchNormBackward"
    assert conv["runs"] == norm["runs"] == 53 * 6
    assert 2.1 < conv["backward_ratio"] < 2.2
    assert answer.losses == ()
