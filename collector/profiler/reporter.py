"""Answers questions: selects the view, asks it, and delivers the answer according to the options."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from collector.files.atomic_files import atomic_write, check_writable
from collector.profiler import pprof, view_timeline
from collector.profiler.attributes import doc_block
from collector.profiler.model import Model
from collector.profiler.profile_options import Options
from collector.profiler.profiler_errors import MissingStepError, MissingTracesError, ViewError
from collector.profiler.views.group import GroupAnswer
from collector.profiler.views.tree import Answer
from collector.profiler.views.view import Message, ModelView
from collector.profiler.views.view_registry import VIEWS
from collector.protos import GraphNodeProto, PprofProfile
from collector.runtime.garbage import no_garbage_collection
from collector.text import terminal

if TYPE_CHECKING:
    from collector.profiler.values import Variables

MAX_LEVELS = 10_000
"""Limit of the depth of a tree: deeper trees would need gigabytes for indents and scope names."""


@dataclass(frozen=True)
class Report:
    """The answer of a view before its delivery."""

    make_message: Callable[[], Message]
    make_text: Callable[[], str] = str
    files: tuple[tuple[str, bytes], ...] = ()
    """(path, content) of the files to write."""
    note: str = ""
    """A message to print after they are written."""

    @cached_property
    def message(self) -> Message:
        """The answer as TensorFlow's message, made at first use."""
        return self.make_message()

    @cached_property
    def text(self) -> str:
        """Explanations, legend and tree; ``""`` if the answer is a trace or a pprof file."""
        return self.make_text()


class Reporter:
    """Answers questions about one model; trees are built once per view and kept until the model changes."""

    def __init__(self, model: Model, variables: Variables | None = None) -> None:
        self.model = model
        self.variables = variables
        self._views: dict[str, tuple[int, ModelView | None]] = {}

    @no_garbage_collection()
    def ask(self, view: str, options: Options) -> Report:
        """Answers a question. Nothing is written or printed yet.

        Raises:
            MissingStepError: the step was not profiled.
            MissingTracesError: the code view needs an op log with traces.
            ViewError: the view cannot give that answer.
        """
        model = self.model
        if options.step >= 0 and options.step not in model.steps:
            steps = " ".join(map(str, sorted(model.steps))) or "none"
            raise MissingStepError(f"Options -step={options.step} not found", f"Available steps: {steps}")
        if view == "code" and not model.has_traces:
            remedy = "Give an op log with traces"
            if not model.has_graph:
                remedy += ", or record the step with stacks: trace(stacks=True), or with_stack=True of torch.profiler"
            raise MissingTracesError("No code trace information", remedy)
        kind = options.output.kind
        if kind == "pprof":
            return self._pprof(view, options)
        if kind == "timeline":
            return self._timeline(view, options)
        heading = model.notice + doc_block(VIEWS[view].doc, options.select)
        answer = self._answer(view, options)
        report = Report(answer.message, lambda: heading + answer.text())
        if kind != "file":
            return report
        return Report(answer.message, lambda: report.text, ((options.output.path, _encoded(report.text)),))

    def view(self, name: str) -> ModelView:
        """The tree of a view."""
        generation, view = self._views.get(name, (-1, None))
        if view is None or generation != self.model.generation:
            if name == "scope":
                _check_scopes(self.model)
            view = VIEWS[name].of(self.model)
            self._views[name] = (self.model.generation, view)
        return view

    def _answer(self, name: str, options: Options) -> Answer | GroupAnswer:
        view = self.view(name)
        if name == "graph" and self.model.nodes and not view.depth:
            raise ViewError("every node of the graph is an input of another: the graph has cycles and no start")
        if options.max_depth > MAX_LEVELS and view.depth >= MAX_LEVELS:
            raise ViewError(f"the {name} view is more than {MAX_LEVELS} levels deep", f"Show -max_depth {MAX_LEVELS}")
        return view.answer(options, self.variables)

    def _pprof(self, view: str, options: Options) -> Report:
        if view != "code" and self.model.has_graph:
            raise ViewError("Only 'code' view supports pprof output now")
        if view not in ("code", "scope"):
            raise ViewError(f"the {view} view has no pprof output", "Ask for the code or the scope view")
        attribute = pprof.measure_of(options.select)
        answer = self._answer(view, options)
        path = options.output.path
        note = f"\nRun pprof -png --nodecount=100 --sample_index=1 <{path}>\n"
        content = pprof.encode(self._pprof_profile(answer, attribute))
        return Report(answer.message, files=((path, content),), note=note)

    def _pprof_profile(self, answer: Answer | GroupAnswer, attribute: str) -> PprofProfile:
        if isinstance(answer, Answer):
            return pprof.from_scopes(answer.root(), attribute)
        return (pprof.from_code if self.model.has_graph else pprof.from_lines)(answer.root(), attribute)

    def _timeline(self, view: str, options: Options) -> Report:
        if view == "op":
            raise ViewError("op view doesn't support timeline yet", "Consider graph/scope/code view")
        if view == "graph":
            return self._graph_timeline(options)
        answer = self._answer(view, options)
        path = f"{options.output.path}_{options.step}"
        content = _encoded(view_timeline.flame(answer.root()))
        return Report(answer.message, files=((path, content),), note=_file_note(path))

    def _graph_timeline(self, options: Options) -> Report:
        """One file per step; the message only for a step that was given by number."""
        if options.step < 0:
            reports = [self._graph_timeline(options.replace(step=step)) for step in sorted(self.model.steps)]
            files = tuple(file for report in reports for file in report.files)
            return Report(GraphNodeProto, files=files, note="".join(report.note for report in reports))
        answer = self._answer("graph", options)
        if not isinstance(answer, Answer):
            raise TypeError(answer)
        chart = view_timeline.GraphTrace(options.step, answer)
        path = f"{options.output.path}_{options.step}"
        content = _encoded(chart.render())
        peaks = "".join(f"{device} peak memory: {peak / 1e6:.2f} MB\n" for device, peak in chart.peaks)
        note = f"generating trace file.\n{peaks}{_file_note(path)}"
        return Report(answer.message, files=((path, content),), note=note)


def _check_scopes(model: Model) -> None:
    deepest = max((name.count("/") for name in model.nodes), default=0)
    if deepest > MAX_LEVELS:
        raise ViewError(f"a name is {deepest} scopes deep; the scope view takes {MAX_LEVELS} at most")


def _file_note(path: str) -> str:
    stars = "*" * 54
    return (
        f"\n{stars}\nTimeline file is written to {path}.\nOpen a Chrome browser, enter URL chrome://tracing and load "
        f"the timeline file.\n{stars}\n"
    )


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def framed(options: Options, text: str) -> Iterator[str]:
    """The report as printed: options, report, end."""
    yield f"\n{'=' * 25}Options{'=' * 29}\n{options}"
    yield f"\n{'=' * 18}Model Analysis Report{'=' * 22}\n{text}"
    yield f"\n{'=' * 22}End of Report{'=' * 26}\n"


def deliver(report: Report, options: Options) -> None:
    """Writes the report's files and prints its text.

    Raises:
        OutputError: a file cannot be written.
    """
    write_files(report)
    if options.output.kind == "stdout":
        terminal.write("".join(framed(options, report.text)))
    else:
        terminal.write(report.note)


def write_files(report: Report, inputs: Iterable[str | os.PathLike[str]] = ()) -> None:
    """Writes the report's files, each as a whole or not at all.

    Args:
        report: the answer.
        inputs: files that were read for it and are not replaced.

    Raises:
        OutputError: one cannot be written, or is an input.
    """
    read = list(inputs)
    for path, _ in report.files:
        check_writable(path, *read)
    for path, content in report.files:
        with atomic_write(path) as file:
            file.write(content)
