"""Float operations of a graph node from the shapes of its tensors.

A multiplication and an addition count as two. The formulas are tfprof's; every shape they need must be complete.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod

from collector.protos import GraphDef, NodeDef, TensorShapeProto

Shape = list[int]


class IncompleteShapeError(ValueError):
    """A shape that the formula needs has an unknown dimension or rank."""


class Shapes:
    """Output shapes by tensor reference (``node`` or ``node:output``), from the nodes' ``_output_shapes``."""

    def __init__(self, graph: GraphDef) -> None:
        self._outputs: dict[str, list[TensorShapeProto]] = {
            node.name: list(node.attr["_output_shapes"].list.shape)
            for node in graph.node
            if "_output_shapes" in node.attr
        }

    def of(self, reference: str) -> Shape:
        """The shape of a tensor.

        Raises:
            IncompleteShapeError: the shape is not fully known.
        """
        name, _, output = reference.partition(":")
        outputs = self._outputs.get(name, [])
        index = int(output or 0)
        if index >= len(outputs) or outputs[index].unknown_rank or any(dim.size < 0 for dim in outputs[index].dim):
            raise IncompleteShapeError(reference)
        return [dim.size for dim in outputs[index].dim]


Formula = Callable[[NodeDef, Shapes], float]


def _per_element(flops: int = 1) -> Formula:
    """The formula of ``flops`` operations per output element."""
    return lambda node, shapes: flops * prod(shapes.of(node.name))


def _per_input_element(flops: int = 1) -> Formula:
    """The formula of ``flops`` operations per element of the first input."""
    return lambda node, shapes: flops * prod(shapes.of(node.input[0]))


def _reduction(finish: int = 0) -> Formula:
    """The formula of one operation per element that is reduced, plus ``finish`` operations per output element."""

    def formula(node: NodeDef, shapes: Shapes) -> float:
        return prod(shapes.of(node.input[0])) + prod(shapes.of(node.name)) * (finish - 1)

    return formula


def _l2_loss(node: NodeDef, shapes: Shapes) -> float:
    return 3 * prod(shapes.of(node.input[0])) - 1


def _add_n(node: NodeDef, shapes: Shapes) -> float:
    return prod(shapes.of(node.input[0])) * (len(node.input) - 1) if node.input else 0


def _mat_mul(node: NodeDef, shapes: Shapes) -> float:
    """2·m·k·n."""
    first = shapes.of(node.input[0])
    return 2 * first[0 if node.attr["transpose_a"].b else 1] * prod(shapes.of(node.name))


def _batch_mat_mul(node: NodeDef, shapes: Shapes) -> float:
    """2·m·k·n per matrix."""
    first = shapes.of(node.input[0])
    return 2 * first[-2 if node.attr["adj_x"].b else -1] * prod(shapes.of(node.name))


def _convolution(summed_dims: int) -> Formula:
    """2·(elements of the filter per output element)·(output elements)."""

    def formula(node: NodeDef, shapes: Shapes) -> float:
        shapes.of(node.input[0])
        return 2 * prod(shapes.of(node.input[1])[:summed_dims]) * prod(shapes.of(node.name))

    return formula


def _convolution_gradient(image: Callable[[NodeDef], str], kernel: Callable[[NodeDef], str]) -> Formula:
    """2·image·kernel elements over the image's channels and the strides."""

    def formula(node: NodeDef, shapes: Shapes) -> float:
        image_shape, kernel_shape = shapes.of(image(node)), shapes.of(kernel(node))
        strides = prod(node.attr["strides"].list.i)
        return 2 * prod(image_shape) * prod(kernel_shape) / (image_shape[-1] * strides)

    return formula


def _window(node: NodeDef) -> int:
    return prod(node.attr["ksize"].list.i)


def _pool(node: NodeDef, shapes: Shapes) -> float:
    return _window(node) * prod(shapes.of(node.name))


def _average_pool_gradient(node: NodeDef, shapes: Shapes) -> float:
    return 2 * _window(node) * prod(shapes.of(node.input[1]))


def _max_pool_gradient(node: NodeDef, shapes: Shapes) -> float:
    """Finding the maximum again, plus one addition per element."""
    pooled = prod(shapes.of(node.input[1]))
    return _window(node) * pooled + pooled


_ELEMENTWISE = [
    "Add",
    "AddV2",
    "Sub",
    "Mul",
    "RealDiv",
    "Maximum",
    "Minimum",
    "Pow",
    "Greater",
    "GreaterEqual",
    "Less",
    "LessEqual",
    "Equal",
    "NotEqual",
]

FORMULAS: Mapping[str, Formula] = {
    **dict.fromkeys(_ELEMENTWISE, _per_element()),
    **dict.fromkeys(("Reciprocal", "Square", "Log", "Neg", "AssignAdd", "AssignSub"), _per_input_element()),
    "SquaredDifference": _per_element(2),
    "RsqrtGrad": _per_element(4),
    "Rsqrt": _per_input_element(2),
    "Softmax": _per_input_element(5),
    "BiasAdd": _per_input_element(),
    "L2Loss": _l2_loss,
    "AddN": _add_n,
    "Mean": _reduction(finish=1),
    **dict.fromkeys(("Sum", "ArgMax", "ArgMin", "BiasAddGrad"), _reduction()),
    "MatMul": _mat_mul,
    **dict.fromkeys(("BatchMatMul", "BatchMatMulV2"), _batch_mat_mul),
    "Conv2D": _convolution(3),
    "Conv3D": _convolution(4),
    "DepthwiseConv2dNative": _convolution(2),
    "Dilation2D": _convolution(2),
    "Conv2DBackpropInput": _convolution_gradient(lambda node: node.name, lambda node: node.input[1]),
    "Conv2DBackpropFilter": _convolution_gradient(lambda node: node.input[0], lambda node: node.name),
    "AvgPool": _pool,
    "MaxPool": _pool,
    "AvgPoolGrad": _average_pool_gradient,
    "MaxPoolGrad": _max_pool_gradient,
}
"""Op type -> formula. Other types count as 0."""


def of(node: NodeDef, shapes: Shapes) -> int:
    """Float operations of one run.

    Raises:
        IncompleteShapeError: a required shape is not fully known.
    """
    formula = FORMULAS.get(node.op)
    return int(formula(node, shapes)) if formula else 0
