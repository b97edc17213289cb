"""tfprof's Python interface, without TensorFlow."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from collector.checked_arguments import mapping, whole_number
from collector.errors import OutputError
from collector.formats.call_sums import CallSums
from collector.profiler import oplog, persist
from collector.profiler.inputs import load
from collector.profiler.live_graph import LiveGraph, default_graph, definition_of, is_live, op_log_of
from collector.profiler.model import ROOT_NAME, Model
from collector.profiler.profile_options import Options
from collector.profiler.profiler_errors import MissingStepError, MissingTracesError, OptionError, ViewError
from collector.profiler.reporter import Reporter, deliver
from collector.profiler.views.view import Message
from collector.profiler.views.view_registry import VIEWS
from collector.protos import (
    AdviceProto,
    GraphDef,
    GraphNodeProto,
    MultiGraphNodeProto,
    OpLogProto,
    ProfileProto,
    RunMetadata,
)

if TYPE_CHECKING:
    from collector.formats.step import Step
    from collector.profiler.recorded_steps import RecordedStep
    from collector.recording.recording import Recording

log = logging.getLogger("collector.profiler")

Source = str | os.PathLike[str] | bytes
"""A file, or the serialized message."""
AnyGraph = GraphDef | Source | LiveGraph
"""Also a ``tf.Graph``."""


class Profiler:
    """Profiles several steps of one model.

    >>> profiler = Profiler(graph="graph.pb")
    >>> coverage = profiler.add_step(1, "run_meta_1.pb")
    >>> node = profiler.profile_name_scope(ProfileOptionBuilder.time_and_memory())

    Args:
        graph: the ``GraphDef``, its file (binary or text), a ``tf.Graph``, or None: the model then consists of the
            nodes that the steps contain.
        op_log: entries for ops (types, flops, stacks), or a file of them.

    Raises:
        InvalidFileError: a file is not of the expected type.
    """

    def __init__(self, graph: AnyGraph | None = None, op_log: OpLogProto | Source | None = None) -> None:
        self.model = Model()
        self.reporter = Reporter(self.model)
        self.recorded: dict[int, RecordedStep] = {}
        """Steps recorded without a graph, for advice."""
        self._summed: list[CallSums] = []
        """Steps of which only sums are known, on which no advice can be given."""
        self._live: LiveGraph | None = None
        """A TensorFlow graph; every step completes its unknown shapes."""
        self._add_op_log(self._add_graph(graph, None, op_log))

    def _add_graph(
        self,
        graph: AnyGraph | None,
        run_meta: RunMetadata | None,
        op_log: OpLogProto | Source | None,
        with_traces: bool = True,
    ) -> OpLogProto | None:
        """Adds the nodes; returns the entries to pass to `_add_op_log` once all nodes have been added."""
        user = None if op_log is None else load(op_log, OpLogProto)
        if graph is None:
            return user
        if not is_live(graph):
            self.model.add_graph(load(cast("GraphDef | Source", graph), GraphDef))
            return user
        self._live = graph
        definition = definition_of(graph, run_meta)
        self.model.add_graph(definition)
        return op_log_of(graph, definition, user, with_traces=with_traces)

    def _add_op_log(self, op_log: OpLogProto | None) -> None:
        if op_log is not None:
            self.model.add_op_log(op_log)

    @classmethod
    def from_profile(cls, profile: ProfileProto | Source) -> Profiler:
        """Continues a profile that ``serialize_to_string`` returned."""
        profiler = cls()
        profiler.model = persist.from_proto(load(profile, ProfileProto))
        profiler.reporter = Reporter(profiler.model)
        return profiler

    def add_step(
        self,
        step: int,
        run_meta: RunMetadata | Source,
        graph: AnyGraph | None = None,
        op_log: OpLogProto | Source | None = None,
    ) -> float:
        """Adds a run of ``step``; the same step again is merged. Returns the share of nodes that have run, 0 … 1.

        Raises:
            TypeError: ``step`` is not a whole number.
            InvalidFileError: a file is not of the expected type.
        """
        step = whole_number("step", step)
        metadata = load(run_meta, RunMetadata)
        if graph is None:
            graph = self._live or (None if self.model.has_graph else default_graph(run_meta))
        notes = self._add_graph(graph, metadata, op_log)
        self.model.add_step(step, metadata)
        self._add_op_log(notes)
        return self.model.coverage

    def add_recorded_step(self, step: int, source: Source | RunMetadata | Recording | Step) -> None:
        """Adds a step recorded without a graph: annotation paths become scopes, and kernels children of their op.

        Args:
            step: the number that the step gets in the profile.
            source: a file for `collector.load`, or its result; a recording; RunMetadata or its bytes.

        Raises:
            InvalidFileError: the file is not a step.
            TypeError: ``step`` is not a whole number.
        """
        step = whole_number("step", step)
        from collector.profiler.recorded_steps import add_step
        from collector.profiler.step_reader import read_step_or_sums
        from collector.profiler.summed_runs import add_sums

        found = read_step_or_sums(source)
        if isinstance(found, CallSums):
            self._summed.append(found)
            add_sums(self.model, step, found)
        else:
            self.recorded[step] = found
            add_step(self.model, step, found)

    def add_op_log(self, op_log: OpLogProto | Source) -> None:
        """Adds types, flops and stacks to the nodes that exist already."""
        self.model.add_op_log(load(op_log, OpLogProto))

    def add_checkpoint(self, prefix: str | os.PathLike[str]) -> None:
        """Adds the variables of a checkpoint (format V2): their values can be shown, and their nodes get a type.

        Raises:
            InvalidFileError: the checkpoint is missing or corrupt.
        """
        from collector.profiler.checkpoint import Checkpoint
        from collector.profiler.values import Variables

        checkpoint = Checkpoint(prefix)
        self.model.mark_checkpointed(checkpoint.names())
        self.reporter.variables = Variables(checkpoint)

    def advice_text(self, options: Mapping[str, str] | None = None) -> str:
        """All advice as text: tfprof's, and for recorded steps the findings in their records.

        Args:
            options: ``explain`` for the evidence, and thresholds by name.

        Raises:
            InvalidFileError: a step holds sums without start times.
        """
        from collector.profiler.advice import step_advice, tfprof_advice

        if self._summed:
            raise self._summed[0].refusal

        parts = [tfprof_advice.text(tfprof_advice.advise(self.reporter))] if not self.recorded else []
        parts += [
            step_advice.text(step_advice.advise(step, options), options) for _, step in sorted(self.recorded.items())
        ]
        return "".join(parts)

    @property
    def coverage(self) -> float:
        """Share of the graph's nodes that ran; 1 without a graph."""
        return self.model.coverage if self.model.has_graph else 1.0

    def answer(self, view: str, options: Mapping[str, Any] | Options) -> Message:
        """Any view by its name, printed or written according to the options; see ``profile_name_scope``."""
        return self._profile(view, options)

    def profile_name_scope(self, options: Mapping[str, Any] | Options) -> GraphNodeProto:
        """The scope view."""
        return self._profile("scope", options)  # type: ignore[return-value]

    def profile_graph(self, options: Mapping[str, Any] | Options) -> GraphNodeProto:
        """The graph view."""
        return self._profile("graph", options)  # type: ignore[return-value]

    def profile_operations(self, options: Mapping[str, Any] | Options) -> MultiGraphNodeProto:
        """The op view."""
        return self._profile("op", options)  # type: ignore[return-value]

    def profile_python(self, options: Mapping[str, Any] | Options) -> MultiGraphNodeProto:
        """The code view."""
        return self._profile("code", options)  # type: ignore[return-value]

    def advise(self, options: Mapping[str, Mapping[str, str]] | None = None) -> AdviceProto:
        """The findings of tfprof's checkers, which are also printed.

        Args:
            options: checker name -> its options; None: all.

        Raises:
            TypeError: the options are not a dict.
        """
        if options is not None:
            mapping("options", options)
        from collector.profiler.advice import tfprof_advice

        advice = tfprof_advice.advise(self.reporter, options)
        tfprof_advice.show(advice)
        return advice

    def serialize_to_string(self) -> bytes:
        """The whole profile as a serialized ``ProfileProto``. Equal profiles have equal bytes."""
        return persist.to_proto(self.model).SerializeToString(deterministic=True)

    def _profile(self, view: str, words: Mapping[str, Any] | Options) -> Message:
        """As in tfprof, an impossible answer is an empty message, and its reason is logged."""
        try:
            options = words if isinstance(words, Options) else Options.from_words(words)
            report = self.reporter.ask(view, options)
        except (OptionError, MissingStepError, MissingTracesError) as error:
            log.error("%s", error)
            return VIEWS[view].message()
        except ViewError as error:
            log.error("%s", error)
            message = VIEWS[view].message()
            message.name = ROOT_NAME
            return message
        try:
            deliver(report, options)
        except OutputError as error:
            log.error("%s", error)
        return report.message


def profile(
    graph: AnyGraph | None = None,
    run_meta: RunMetadata | Source | None = None,
    op_log: OpLogProto | Source | None = None,
    cmd: str = "scope",
    options: Mapping[str, Any] | Options | None = None,
) -> Message:
    """Answers one question about a model and optionally one step of it.

    Args:
        graph: the graph that ``Profiler`` takes.
        run_meta: the recording of one step; it becomes step 0.
        op_log: the op log that ``Profiler`` takes.
        cmd: scope, graph, op or code.
        options: from ``ProfileOptionBuilder``; None is its ``trainable_variables_parameter``.

    Raises:
        OptionError: ``cmd`` is unknown.
        InvalidFileError: a file is not of the expected type.
    """
    from collector.profiler.builder import ProfileOptionBuilder

    if cmd not in VIEWS:
        raise OptionError(f"no view {cmd!r}", f"There are {', '.join(VIEWS)}")
    profiler = _one_step(graph, run_meta, op_log, with_traces=cmd == "code")
    return profiler._profile(cmd, ProfileOptionBuilder.trainable_variables_parameter() if options is None else options)


def advise(
    graph: AnyGraph | None = None,
    run_meta: RunMetadata | Source | None = None,
    options: Mapping[str, Mapping[str, str]] | None = None,
    op_log: OpLogProto | Source | None = None,
) -> AdviceProto:
    """The findings of tfprof's checkers in one step, which are also printed."""
    return _one_step(graph, run_meta, op_log).advise(options)


def _one_step(
    graph: AnyGraph | None,
    run_meta: RunMetadata | Source | None,
    op_log: OpLogProto | Source | None,
    with_traces: bool = True,
) -> Profiler:
    """The op log is added last, because it may refer to nodes that only the step has."""
    profiler = Profiler()
    graph = default_graph(run_meta) if graph is None else graph
    metadata = None if run_meta is None else load(run_meta, RunMetadata)
    notes = profiler._add_graph(graph, metadata, op_log, with_traces)
    if metadata is not None:
        profiler.model.add_step(0, metadata)
    profiler._add_op_log(notes)
    return profiler


def write_op_log(
    graph: AnyGraph | None,
    log_dir: str | os.PathLike[str],
    op_log: OpLogProto | Source | None = None,
    run_meta: RunMetadata | Source | None = None,
    add_trace: bool = True,
    trainable: Iterable[str] = (),
) -> Path:
    """Writes ``<log_dir>/tfprof_log``: the given op log, flops of ops with known shapes, and the trainable variables.

    Args:
        graph: the graph with inferred shapes, of which ``run_meta`` fills in unknown ones; None: TensorFlow's default.
        log_dir: created if it does not exist.
        op_log: the user's entries, which take precedence.
        run_meta: the recording of one step.
        add_trace: include the Python stack of every op, which only a ``tf.Graph`` knows.
        trainable: names of the variables that are trained; a ``tf.Graph`` knows its own.

    Returns:
        The file.

    Raises:
        InvalidFileError: a file is not of the expected type.
        ValueError: there is no graph.
    """
    graph = default_graph() if graph is None else graph
    if graph is None:
        raise ValueError("there is no graph: none is given, and TensorFlow has built none")
    metadata = None if run_meta is None else load(run_meta, RunMetadata)
    user = None if op_log is None else load(op_log, OpLogProto)
    if is_live(graph):
        merged = op_log_of(graph, definition_of(graph, metadata), user, with_traces=add_trace)
    else:
        definition = load(cast("GraphDef | Source", graph), GraphDef)
        filled = definition if metadata is None else oplog.fill_shapes(definition, metadata)
        merged = oplog.merge_default(filled, user, trainable)
    path = Path(log_dir) / "tfprof_log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(merged.SerializeToString(deterministic=True))
    return path
