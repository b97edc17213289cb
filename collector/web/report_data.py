"""The data of a page: answers, lanes, findings and losses of each step, without anything about machine or person.

``first`` is the place of the step that the page opens at: behind those with which the others are compared.

Its ``compare`` is null, or the answers of `collector.analysis.compare` about two sets of the page's steps:

* ``before`` and ``now``: ``{"name": text for people, "steps": places in the page's steps}``;
* ``answers``: what is compared (``step``, ``time``, ``op``, ``kernel``, ``shape``, ``idle``, ``copies``) -> an answer
  like any other, the largest change first. Its columns are the keys, ``count_before`` and ``count_now`` (not of all),
  ``before_ns``, ``now_ns``, ``change_ns``, ``ratio``, ``low`` and ``high`` (the interval of the ratio, null where there
  is none) and ``verdict``; its totals ``before_steps``, ``now_steps``, ``before_ns``, ``now_ns``, ``change_ns``. Its
  ``notes`` say why there are no intervals or verdicts.

Where steps cannot be compared, ``compare`` is null and ``refused["compare"]`` states the reason.

An answer has ``columns``, their ``values`` in the rows that the page is given (collector/web/given_rows.py), the number
of ``rows`` that there are, and ``totals``. Where rows are a tree and not all are given, ``chosen_by`` is the column
whose largest figures decided, else ``""``, and ``left_out`` has for the rows that are missing inside a given row, or
outside of all (-1): the row, their number, and the sum of their totals. ``largest`` has the values of the rows with the
largest figures, whether they are given or not: of the answer ``ops`` by self time, of ``idle_ops`` by idle time.
``longest`` has start and end of the longest kernel, copy or call of each given row, in ns since the step began; it is
empty for other answers (collector/web/longest_rows.py).

``findings`` have the key of the answer with the ``rows`` that they are about, the ``cause`` of the idle time that they
are about, or an empty text, and its ``gap`` (collector/web/finding_gaps.py), or null.

A part of a step, chosen by its begin and end in ns since the step began, is that of `collector.analysis.between`. Where
``rows`` is not null, the page holds the rows of the step (collector/web/part_rows.py) and answers about parts itself,
as web/src/part does. Else, where it has all slices (``slices`` is the sum of those of the lanes, and no lane is left
out), the slices of its streams whose name is one of the first ``kernel_names`` are all of its kernels: the answers
``kernels/name`` and ``kernels/stream`` about a part follow exactly (web/src/kernels_within.js). All other answers are
about the whole step. ``start_ns`` is when the step began, on the clock of the recording, as text. Slices may begin
before that, from ``first_ns`` on, and end behind the step; ``time_bytes`` is the width of their times. ``marks`` are
begin and end of each row of the answer ``steps``, counted alike; ``loss_times`` are times of losses by the ledger's
field; ``memory`` has the curves that the page draws (collector/web/memory_curves.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from collector.analysis.busy_time import devices
from collector.analysis.compare import BY, comparisons
from collector.analysis.idle import CAUSES, idle, largest_causes
from collector.analysis.largest_paths import largest_paths
from collector.analysis.no_launches import no_launches
from collector.analysis.questions import QUESTIONS
from collector.analysis.shared_values import shared_values
from collector.analysis.whole_graphs import whole_graphs
from collector.errors import CollectorError
from collector.formats.step import Step
from collector.recording.device_models import device_models
from collector.recording.loss_times import times_of_losses
from collector.recording.run_label import RunLabel
from collector.text.library_path import without_folders
from collector.text.quantities import time_text
from collector.text.shell_words import file_argument
from collector.text.wording import counted
from collector.version import version
from collector.web.answer_commands import (
    answer_keys,
    python_expression,
    sql_command,
    stats_command,
)
from collector.web.finding_gaps import with_gaps
from collector.web.given_rows import GivenRows, given_rows
from collector.web.longest_rows import longest_rows
from collector.web.memory_curves import memory_curves
from collector.web.recorded_with import recorded_with
from collector.web.report_lanes import BINS, FULL, lanes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy.typing as npt

    from collector.analysis.answer import Answer, Window
    from collector.analysis.named_question import NamedQuestion
    from collector.formats.step import TracedStep
    from collector.recording.recording import Recording
    from collector.web.report_lanes import Lanes

FORMAT = "collector-report/1"
"""The format that the data names."""
_LARGEST = {"ops": "self_ns", "idle_ops": "idle_ns"}
"""Question -> the column whose largest figures a view shows; their rows may not be among those that a page is given."""
_MOST_LARGEST = 8
_NAMES_IN_LINE = 3
_EXACT = 2**53
"""Up to here JavaScript's numbers are exact; larger integers are given as text."""
_OF_MANY = "steps"
"""The question about one step that is also asked of several together, as those about ranks are."""


@dataclass(frozen=True)
class StepData:
    """A step as the page has it."""

    described: Mapping[str, Any]
    """All but the lanes, as values that ``json.dumps`` takes."""
    lanes: Lanes


def step_data(step: TracedStep, name: str) -> StepData:
    """The data of one step.

    Args:
        step: a loaded step or an ended session.
        name: the name that is shown for it: its file's name.
    """
    findings = findings_of(step)  # before the values that questions share: both together take much memory
    with shared_values():
        lanes = lanes_of(step.recording)
        answers = {}
        for question_name, question in QUESTIONS.items():
            for key, answer, python, cli in (
                () if question.of_ranks else _answers(question_name, question, step, "step", file_argument(name))
            ):
                if key == _OF_MANY:
                    marks = answer.windows
                if len(answer) or key == "devices":
                    # and not the whole answer, which may have a row for each activity
                    data = answer_data(answer, recording=step.recording)
                    answers[key] = {
                        **data,
                        "python": python,
                        "cli": cli,
                        "sql": sql_command(answer, file_argument(name)),
                    }
        return StepData({**described_step(step, name, lanes, marks, findings), "answers": answers}, lanes)


def described_step(
    step: TracedStep, name: str, lanes: Lanes, marks: Sequence[Window], findings: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The data of a step without its answers and lanes; `marks` are its marked steps."""
    recording = step.recording
    return {
        "name": name,
        "warning": _warning(step),
        "unavailable": step.unavailable and without_folders(step.unavailable),
        "nothing": no_launches(recording),
        **RunLabel.of(recording)._asdict(),
        "simulated": bool(recording.environment.get("simulated")),
        "models": [[device, model] for device, model in device_models(recording).items()],
        "recorded_with": recorded_with(recording),
        "length_ns": lanes.end_ns - lanes.start_ns,
        "verdict": _verdict(devices(recording), idle(recording), whole_graphs([recording], are_counted=False)),
        "losses": recording.ledger.losses(),
        "loss_times": {
            field: [time - lanes.start_ns for time in times] for field, times in times_of_losses(recording).items()
        },
        "ledger": [[name, value] for name, value in recording.ledger.as_dict().items() if value],
        "findings": with_gaps(findings, recording),
        "memory": memory_curves(recording),
        "marks": [[each.start_ns - lanes.start_ns, each.end_ns - lanes.start_ns] for each in marks],
        "lanes": [
            {
                "kind": lane.kind,
                "name": lane.name,
                "slices": len(lane.names),
                "device_id": lane.device_id,
                "context_id": lane.context_id,
                "stream_id": lane.stream_id,
                "stream_name": lane.stream_name,
            }
            for lane in lanes.lanes
        ],
        "lanes_left_out": lanes.left_out,
        "names": list(lanes.names),
        "kernel_names": lanes.kernel_names,
        "first_ns": lanes.first_ns - lanes.start_ns,
        "time_bytes": lanes.time_bytes,
        "start_ns": str(lanes.start_ns),
        "bins": BINS,
        "full": FULL,
    }


def page_data(
    steps: Sequence[StepData], together: Sequence[TracedStep], title: str, num_before: int = 0
) -> dict[str, Any]:
    """The data of all steps of a page, and the answers that several of them have together.

    Args:
        steps: the data of the page's steps.
        together: the same steps.
        title: the title of the page.
        num_before: the number of first steps with which the others are compared. 0: none, unless there are exactly two
            steps that are not those of two ranks.
    """
    return {
        "format": FORMAT,
        "version": version(),
        "title": title,
        "first": num_before,
        "steps": [dict(step.described) for step in steps],
        **together_data(together, [step.described["name"] for step in steps], num_before),
    }


def together_data(steps: Sequence[TracedStep], names: Sequence[str], num_before: int = 0) -> dict[str, Any]:
    """The answers of several steps together; arguments are those of `page_data`, with the names of the steps."""
    answers: dict[str, Any] = {}
    refused: dict[str, str] = {}
    compare = None
    if len(steps) > 1:
        for name, question in QUESTIONS.items():
            if question.of_ranks or name == _OF_MANY:
                try:
                    answers |= {
                        key: {**answer_data(answer), "python": python, "cli": cli}
                        for key, answer, python, cli in _answers(name, question, list(steps), "[step, ...]", "FILE...")
                        if len(answer)
                    }
                except CollectorError as error:
                    refused[name] = str(error)
    if len(steps) == 2 and not any(key.startswith("ranks") for key in answers):
        num_before = 1
    if num_before:
        try:
            compare = comparison_data(steps, names, num_before)
        except ValueError as error:
            refused["compare"] = str(error)
    return {"answers": answers, "refused": refused, "compare": compare}


def comparison_data(steps: Sequence[TracedStep], names: Sequence[str], num_before: int) -> dict[str, Any]:
    """The changes from the first steps to the others; the module's docstring has its keys.

    Args:
        steps: to compare.
        names: the names of the steps.
        num_before: the number of first steps with which the others are compared.

    Raises:
        ValueError: one side has no steps.
    """
    places = {"before": range(num_before), "now": range(num_before, len(steps))}
    sides = {side: [steps[place] for place in own] for side, own in places.items()}
    files = [
        file_argument(names[own[0]]) if len(own) == 1 else side.upper() for side, own in places.items()
    ]  # several files are a folder or a pattern, which a page does not know
    return {
        **{
            side: {"name": joined_names([names[place] for place in own]), "steps": list(own)}
            for side, own in places.items()
        },
        "answers": {
            by: {
                **answer_data(answer),
                "python": f"analysis.compare(before, now, by={by!r})",
                "cli": f"collector compare {' '.join(files)} --by {by}",
            }
            for by, answer in zip(BY, comparisons(sides["before"], sides["now"]), strict=True)
        },
    }


def joined_names(names: Sequence[str]) -> str:
    """The names of steps in one line: the first ones, and whether there are more."""
    return ", ".join(names[:_NAMES_IN_LINE]) + (", …" if len(names) > _NAMES_IN_LINE else "")


def answer_data(
    answer: Answer, rows: GivenRows | None = None, *, recording: Recording | None = None, began_ns: int | None = None
) -> dict[str, Any]:
    """An answer by its columns, which the page shows digit for digit; integers that JavaScript cannot hold as text.

    Args:
        answer: to give to a page.
        rows: the rows to give to the page; None: those of `given_rows`.
        recording: the recording that the answer is about; None: there are several.
        began_ns: the begin of the recording's step; None: that of the recording.
    """
    rows = given_rows(answer) if rows is None else rows
    by = _LARGEST.get(answer.question)
    longest: list[list[int]] = []
    if recording is not None:
        began_ns = recording.clock.cupti_start_ns if began_ns is None else began_ns
        longest = longest_rows(answer, recording, rows.places, began_ns)
    return {
        "question": answer.question,
        "definition": answer.definition,
        "columns": [column._asdict() for column in answer.columns],
        "values": _columns(answer, rows.places),
        "rows": len(answer),
        "chosen_by": rows.chosen_by,
        "left_out": [[place, count, _exact(total)] for place, count, total in rows.left_out],
        "largest": _columns(answer, largest_paths(answer, by, _MOST_LARGEST)) if by else [],
        "longest": longest,
        "totals": {name: _exact(value) for name, value in answer.totals.items()},
        "losses": list(answer.losses),
        "notes": list(answer.notes),
    }


def _columns(answer: Answer, places: npt.NDArray[np.int64]) -> list[list[Any]]:
    return [_values(answer[column.name][places]) for column in answer.columns]


def _values(values: npt.NDArray[Any]) -> list[Any]:
    found: list[Any] = values.tolist()
    if values.dtype.kind == "i" and (not len(values) or max(-int(values.min()), int(values.max())) < _EXACT):
        return found
    if values.dtype.kind == "f" and np.isfinite(values).all():
        return found
    return [_exact(value) for value in found]


def _exact(value: Any) -> Any:
    if isinstance(value, int) and abs(value) >= _EXACT:
        return str(value)
    if isinstance(value, float) and math.isinf(value):
        return str(value)  # JSON has no such number
    return None if value != value else value


def _answers(
    name: str, question: NamedQuestion, asked: TracedStep | Sequence[TracedStep], argument: str, files: str
) -> Iterator[tuple[str, Answer, str, str]]:
    """Each answer to a question with its key, its expression in Python and its command."""
    for key, by in answer_keys(name).items():
        answer = question.answer(asked, by)
        yield key, answer, python_expression(name, by, argument), stats_command(name, by, files)


def _warning(step: TracedStep) -> str | None:
    """The parts of the step's file that could not be read, without names of folders."""
    if not isinstance(step, Step) or not step.warning:
        return None
    return without_folders(step.warning.removeprefix(f"{step.path}: "))


def _verdict(devices: Answer, idle: Answer, uncounted: str) -> str:
    """One sentence: the busy share of the devices, the main cause of idle time, and work that kernel figures omit."""
    if not len(devices):
        return "No GPU did anything in this step."
    return f"{_busy_and_idle(devices, idle)} {uncounted}".rstrip()


def _busy_and_idle(devices: Answer, idle: Answer) -> str:
    busy, window = devices.totals["busy_ns"], devices.totals["window_ns"]
    whose = f"GPU {devices['device_id'][0]}" if len(devices) == 1 else counted("{:,} GPU[|s]", len(devices))
    sentence = f"{whose} {'was' if len(devices) == 1 else 'were'} busy {busy / window if window else 0:.1%} of the time"
    causes = largest_causes(idle)
    if not causes:
        return f"{sentence}."
    cause, cause_ns = causes[0]
    return (
        f"{sentence}; the largest part of the idle time, {time_text(cause_ns)} of {time_text(idle.totals['idle_ns'])}: "
        f"{CAUSES[cause][0].lower()}{CAUSES[cause][1:]}"
    )


def findings_of(step: TracedStep) -> list[dict[str, Any]]:
    """The advice about a step."""
    from collector.profiler.advice.checker_registry import CHECKERS
    from collector.profiler.advice.recording_columns import RecordingStep
    from collector.profiler.advice.step_advice import advise
    from collector.profiler.step_reader import read_step

    step = step.columns_alone()
    recorded = step.recorded
    found = advise(read_step(step) if recorded is None else RecordingStep.of(recorded, step.device_prefix))
    return [
        {
            "severity": each.severity.name.lower(),
            "checker": each.checker,
            "line": each.line,
            "evidence": list(each.evidence),
            "rows": CHECKERS[each.checker].rows,
            "cause": CHECKERS[each.checker].cause,
        }
        for each in found
    ]
