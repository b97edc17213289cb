"""The model of a profile: the nodes of a graph, their entries in the op log, their executions in each step."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from collector.profiler.execution import Execution, is_accelerator_stream, is_canonical, is_on_accelerator
from collector.profiler.stats import Figures
from collector.protos import GraphDef, NodeExecStats, OpLogProto, RunMetadata, TensorShapeProto
from collector.runtime.garbage import no_garbage_collection

log = logging.getLogger("collector.profiler")

ROOT_NAME = "_TFProfRoot"
SCOPE_PARENT = "_kTFScopeParent"
GRAPH_PARENT = "_TFGraphParent"
TRAINABLE = "_trainable_variables"
CHECKPOINTED = "_checkpoint_variables"

MISSING_STREAM_NOTICE = (
    "\n\nFound accelerator operation but misses accelerator stream stats!\n\n"
    "It's likely a gpu tracing issue rather than tf-profiler issue.\n"
    "If you found your operation missing accelerator time, consider to post to discuss@tensorflow.org!\n\n"
)


@dataclass(frozen=True)
class Frame:
    """One frame of the Python stack that created a node."""

    file: str
    line: int
    function: str
    source: str = ""
    first_line: int = -1
    """First line of the function; -1: unknown."""


class Node:
    """One graph node."""

    def __init__(self, name: str, op: str, id_: int = -1) -> None:
        self.name = name
        self.op = op
        self.id = id_
        self.attrs: dict[str, Any] = {}
        self.shape: list[int] = []
        """Shape of the variable it contains; -1 for an unknown dimension. Empty: unknown shape. A scalar is ``[1]``."""
        self.output_shapes: dict[int, list[int]] = {}
        self.inputs: dict[int, str] = {}
        """Input index -> producer's name."""
        self.op_types: set[str] = {op}
        self.device = ""
        """The device that runs it, lower case; ``""`` before it ran."""
        self.host_device = ""
        self.static_float_ops = 0
        """Float operations of one run."""
        self.stack: list[Frame] = []
        """The stack, outermost frame first."""
        self.executions: dict[int, Execution] = {}
        """Executions by step."""
        self._consumed: set[str] = set()

    def add_record(self, step: int, device: str, stats: NodeExecStats) -> None:
        """Adds the record of one device (in any case) in one step."""
        device = device.lower()
        if is_canonical(device) and not self._place(device):
            return
        execution = self.executions.get(step)
        if execution is None:
            execution = self.executions[step] = Execution()
        execution.add_times(device, stats.all_start_micros, stats.op_end_rel_micros)
        if device == self.device:
            execution.add_memory(device, stats)

    def consume(self, name: str) -> None:
        """Appends an input, unless ``name`` is one already. An op may launch very many kernels."""
        if len(self._consumed) != len(self.inputs):
            self._consumed = set(self.inputs.values())
        if name not in self._consumed:
            self._consumed.add(name)
            self.inputs[len(self.inputs)] = name

    def _place(self, device: str) -> bool:
        """Whether the node runs on ``device``: the first device is its own, and records of others are not counted."""
        if not self.device:
            self.device = device
            self.host_device = re.sub(r"gpu:\d+", "cpu:0", device)
            self.op_types.add(device)
        elif self.device != device:
            log.info("%s changed device: %s -> %s", self.name, self.device, device)
        return self.device == device

    def producers(self) -> list[str]:
        """The names of its inputs, in the order of their indexes."""
        return [name for _, name in sorted(self.inputs.items())]

    @property
    def parameters(self) -> int:
        """Elements of the variable's shape; 0 if a dimension is unknown."""
        if not self.shape:
            return 0
        product = 1
        for size in self.shape:
            if size < 0:
                return 0
            product *= size
        return product

    def steps(self, step: int) -> list[Execution]:
        """The executions for ``step``: that step, or all with -1."""
        if step < 0:
            return list(self.executions.values())
        execution = self.executions.get(step)
        return [execution] if execution else []

    def run_count(self, step: int) -> int:
        """Runs in ``step``; with -1 the average over the node's steps, rounded down."""
        executions = self.steps(step)
        return sum(execution.run_count for execution in executions) // len(executions) if executions else 0

    def figures(self, step: int) -> Figures:
        """The node's own figures in ``step``, with -1 averages over the steps it has, rounded down."""
        runs = accelerator = cpu = requested = peak = residual = output = 0
        executions = self.steps(step)
        for execution in executions:
            runs += execution.run_count
            accelerator += execution.accelerator_micros
            cpu += execution.cpu_micros
            for run in execution.memory:
                requested += run.requested
                peak += run.peak
                residual += run.residual
                output += run.output
        of_steps: Figures = (accelerator + cpu, accelerator, cpu, requested, peak, residual, output)
        if len(executions) > 1:
            of_steps = tuple(figure // len(executions) for figure in of_steps)
            runs //= len(executions)
        flops = self.static_float_ops and self.static_float_ops * (runs if self.executions else 1)
        return (*of_steps, self.parameters if self.shape else 0, flops, runs, 1)


class Model:
    """All nodes, and the steps that ran."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.steps: set[int] = set()
        self.has_graph = False
        """Whether the nodes come from a graph; otherwise they are those that ran."""
        self.has_traces = False
        """Whether the op log has the places where nodes were created."""
        self.call_sites: dict[tuple[str, tuple[Frame, ...]], Node] = {}
        """The executions per place in the program, for recorded steps with whole Python stacks: nodes only for the code
        view. One op has a node for each calling place; they are not part of a saved profile."""
        self.misses_stream = False
        """Whether an accelerator's ops were recorded without its kernels."""
        self.strings: dict[int, str] = {}
        """The op log's string table, kept for ``ProfileProto``."""
        self._covered: set[str] = set()
        self.generation = 0
        """Changes whenever nodes or their executions change; trees built before are then out of date."""
        self._figures: dict[int, dict[Node, Figures]] = {}
        self._figures_of = 0
        """The generation to which the cached figures belong."""

    def sorted_nodes(self) -> list[Node]:
        """All nodes in the byte order of their names, the order of every view's tree."""
        return [node for _, node in sorted(self.nodes.items(), key=lambda item: item[0].encode())]

    @no_garbage_collection()
    def add_graph(self, graph: GraphDef) -> None:
        """Adds the nodes that do not exist yet."""
        self.has_graph = True
        added = []
        for definition in graph.node:
            if definition.name in self.nodes:
                continue
            node = self.add_node(definition.name, definition.op)
            _read_attrs(node, definition.attr)
            added.append((node, definition.input))
        for node, inputs in added:
            for index, reference in enumerate(inputs):
                node.inputs[index] = reference.partition(":")[0].removeprefix("^")

    def add_node(self, name: str, op: str) -> Node:
        """Adds a node that does not exist yet."""
        node = self.nodes[name] = Node(name, op, len(self.nodes))
        self.generation += 1
        return node

    @no_garbage_collection()
    def add_step(self, step: int, run_metadata: RunMetadata) -> None:
        """Adds a run of a step; the same step again is added to it. Names that the graph lacks become nodes."""
        if not run_metadata.HasField("step_stats"):
            log.error("invalid RunMetadata for step %d: it has no step_stats", step)
            return
        self.steps.add(step)
        self.generation += 1
        devices = [device.device.lower() for device in run_metadata.step_stats.dev_stats]
        on_accelerator = [device for device in devices if is_on_accelerator(device)]
        if on_accelerator and not any(map(is_accelerator_stream, on_accelerator)):
            self.misses_stream = True
        for device in run_metadata.step_stats.dev_stats:
            for stats in device.node_stats:
                name = stats.node_name.partition(":")[0]
                node = self.nodes.get(name)
                if node is None:
                    if name in ("RecvTensor", "_SOURCE") or "MEMCPY" in name:
                        continue
                    node = self.add_node(name, name)
                else:
                    self._covered.add(name)
                node.add_record(step, device.device, stats)

    @no_garbage_collection()
    def add_op_log(self, op_log: OpLogProto) -> None:
        """Adds types, flops and stacks to the nodes that the log names; entries of unknown nodes are ignored."""
        for id_, text in op_log.id_to_string.items():
            self.strings.setdefault(id_, text)
        self.generation += 1
        for entry in op_log.log_entries:
            node = self.nodes.get(entry.name)
            if node is None:
                continue
            node.op_types.update(entry.types)
            if entry.float_ops:
                node.static_float_ops = entry.float_ops
            if entry.HasField("code_def"):
                self.has_traces = True
                node.stack = read_stack(entry.code_def, op_log.id_to_string or self.strings)

    def mark_checkpointed(self, names: Iterable[str]) -> None:
        """Gives the variables of a checkpoint their type."""
        self.generation += 1
        for name in names:
            if name in self.nodes:
                self.nodes[name].op_types.add(CHECKPOINTED)

    @property
    def coverage(self) -> float:
        """Share of the nodes that occur in the records of any step: 0 … 1."""
        return len(self._covered) / (len(self.nodes) + 1e-10)

    @property
    def notice(self) -> str:
        """A warning to print before every report, or ``""``."""
        return MISSING_STREAM_NOTICE if self.misses_stream else ""

    def figures(self, node: Node, step: int) -> Figures:
        """``node.figures(step)``, cached for all views until the model changes."""
        if self._figures_of != self.generation:
            self._figures, self._figures_of = {}, self.generation
        of_step = self._figures.setdefault(step, {})
        figures = of_step.get(node)
        if figures is None:
            figures = of_step[node] = node.figures(step)
        return figures

    def input_shapes(self, node: Node) -> dict[int, list[int]]:
        """Input index -> shape; empty if unknown.

        As in tfprof it is the shape of the producer's first output, whichever output is consumed.
        """
        sources = ((index, self.nodes.get(name)) for index, name in sorted(node.inputs.items()))
        return {index: source.output_shapes.get(0, []) if source else [] for index, source in sources}


def read_stack(code: Any, strings: Mapping[int, str]) -> list[Frame]:
    """The frames of a ``CodeDef``, its ids looked up in ``strings``; old files contain the strings themselves."""
    return [
        Frame(
            file=strings.get(trace.file_id, "") if trace.file_id else trace.file,
            line=trace.lineno,
            function=strings.get(trace.function_id, "") if trace.function_id else trace.function,
            source=strings.get(trace.line_id, "") if trace.line_id else trace.line,
            first_line=trace.func_start_line,
        )
        for trace in code.traces
    ]


def dims_of(shape: TensorShapeProto) -> list[int]:
    """Sizes of the dimensions; ``[1]`` for a scalar, empty for an unknown rank."""
    if not shape.dim:
        return [] if shape.unknown_rank else [1]
    return [dim.size for dim in shape.dim]


def _read_attrs(node: Node, attrs: Mapping[str, Any]) -> None:
    for name, value in attrs.items():
        node.attrs[name] = value
        if name == "shape" and value.HasField("shape"):
            node.shape = dims_of(value.shape)
        elif name == "_output_shapes" and value.HasField("list"):
            node.output_shapes = {index: dims_of(shape) for index, shape in enumerate(value.list.shape)}
