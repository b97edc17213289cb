"""A question that commands and pages ask by its name: its function, the options of it, and its names in other tools."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from collector.analysis.asked import Question

if TYPE_CHECKING:
    from collector.analysis.answer import Answer
    from collector.analysis.asked import Asked


@dataclass(frozen=True)
class NamedQuestion:
    """A question that can be asked by its name, which is the name of its function."""

    ask: Callable[..., Answer]
    """The function of the question, which takes steps, and ``by`` and ``window`` if it has them."""
    questions: Mapping[str, Question]
    """Value of ``by`` -> the question with its columns, the default first; ``""`` where there is no choice."""
    in_overview: bool = False
    """Whether `collector stats` answers it when no question is named."""
    of_sums: bool = False
    """Whether a profile without start times can answer it."""
    of_ranks: bool = False
    """Whether it compares ranks, and refuses the steps of a single rank."""
    counts: tuple[str, ...] = ()
    """The tables whose rows a row of the answer counts; each row counts rows of one of them. Empty: of no one table."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Report of ``nsys stats`` or ``nsys analyze``, or analysis of HolisticTraceAnalysis, that this question answers ->
    its value of ``by``."""
    by_alone: Mapping[str, str] = field(default_factory=dict)
    """Value of ``--by`` that means this question where none is named -> its value of ``by``."""

    def answer(self, steps: Asked, by: str = "", **options: Any) -> Answer:
        """The answer whose rows are counted by ``by``; ``""``: by the default, or there is no choice."""
        return self.ask(steps, **({"by": by} if by else {}), **options)

    @property
    def by(self) -> tuple[str, ...]:
        """The values of ``by``; the first is the default."""
        return tuple(filter(None, self.questions))

    @property
    def has_window(self) -> bool:
        """Whether the function takes ``window``."""
        return "window" in inspect.signature(self.ask).parameters

    @property
    def help(self) -> str:
        """The first line of the function's docstring."""
        return (self.ask.__doc__ or "").partition("\n")[0]


NAMED_QUESTIONS: dict[str, NamedQuestion] = {}
"""Name -> question of the imported modules; `collector.analysis.questions.QUESTIONS` has all in their order."""

Function = TypeVar("Function", bound=Callable[..., "Answer"])


def named_question(questions: Question | Mapping[str, Question], **options: Any) -> Callable[[Function], Function]:
    """A decorator that makes a function a question with its name, and returns the function itself.

    Args:
        questions: the question with its columns, or value of ``by`` -> question.
        options: further fields of `NamedQuestion`.
    """
    by = {"": questions} if isinstance(questions, Question) else questions

    def name(function: Function) -> Function:
        NAMED_QUESTIONS[function.__name__] = NamedQuestion(function, by, **options)
        return function

    return name
