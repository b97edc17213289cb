"""Steps that are given in two files: a trace for a viewer beside its recording, a merged trace beside its inputs."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.merging.rank_numbers import step_number
from collector.recording.schema import ACTIVITY_TABLES
from collector.text import terminal
from collector.text.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from collector.formats.step import Step


@dataclass(frozen=True)
class GivenStep:
    """The file of a step, and its times."""

    name: str
    run: str
    rank: int | None
    """None: not known, or several."""
    start_ns: int
    """Wall time of its first start."""
    end_ns: int


def report_repeats(given: Sequence[GivenStep]) -> None:
    """Report on standard error the first file whose steps other files hold, too, and the number of further ones."""
    found = list(_repeats(given))
    if found:
        step, first, last = found[0]
        times = f"the same times as {first.name}" if first is last else f"the times of {first.name} to {last.name}"
        more = counted(" ({} more such file[|s])", len(found) - 1) if found[1:] else ""
        terminal.report(f"{step.name} has {times}{more}: a step in two files is taken for two. Leave one of them out")


def given_steps(steps: Iterable[Step]) -> list[GivenStep]:
    """The steps that begin or end at once with another one, for `report_repeats`."""
    from collector.analysis.ranks import rank_of

    spans = [(step, span) for step in steps if step.sums is None and (span := _span(step)) is not None]
    starts, ends = (Counter((step.run, span[side]) for step, span in spans) for side in (0, 1))
    return [
        GivenStep(str(step.path), step.run, rank_of(step), *span)
        for step, span in spans
        if starts[step.run, span[0]] > 1 or ends[step.run, span[1]] > 1
    ]


def _span(step: Step) -> tuple[int, int] | None:
    tables = [table for name in ACTIVITY_TABLES if len(table := getattr(step.recording, name))]
    if not tables:
        return None
    shift_ns = step.recording.clock.offset_ns
    start_ns = min(int(table.start_ns.min()) for table in tables)
    return start_ns + shift_ns, max(int(table.end_ns.max()) for table in tables) + shift_ns


def _repeats(given: Sequence[GivenStep]) -> Iterator[tuple[GivenStep, GivenStep, GivenStep]]:
    """Each step that another one repeats, or that holds others, and those with which these begin and end."""
    of_start, of_end = defaultdict(list), defaultdict(list)
    for place, each in enumerate(given):
        of_start[each.run, each.start_ns].append(place)
        of_end[each.run, each.end_ns].append(place)

    def is_part(place: int, whole: int) -> bool:
        part, step = given[place], given[whole]
        if part.name == step.name or part.start_ns < step.start_ns or part.end_ns > step.end_ns:
            return False
        if part.rank != step.rank and step.rank is not None:
            return False
        if (part.start_ns, part.end_ns) != (step.start_ns, step.end_ns):
            return True
        numbers = {step_number(part.name), step_number(step.name)} - {None}
        return len(numbers) < 2 and (place < whole or part.rank != step.rank)

    for place, each in enumerate(given):
        first = next((at for at in of_start[each.run, each.start_ns] if is_part(at, place)), None)
        last = next((at for at in of_end[each.run, each.end_ns] if is_part(at, place)), None)
        if first is not None and last is not None:
            yield each, given[first], given[last]
