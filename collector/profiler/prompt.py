"""The prompt: reads questions, prints answers, and continues after errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector.errors import CollectorError
from collector.profiler import commands
from collector.profiler.attributes import ATTRIBUTES, ORDERS
from collector.profiler.profile_options import OUTPUTS, Options
from collector.text import terminal

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer

PROMPT = "prof> "

Answer = Callable[[commands.Command], str]
"""Executes a command and returns the text to print."""


class Prompt:
    """Reads lines until the end of input; options that were ``set`` stay."""

    def __init__(self, answer: Answer, options: Options | None = None) -> None:
        self._answer = answer
        self.options = options or Options()

    def run(self, lines: Iterable[str], write: Callable[[str], None]) -> bool:
        """Answers every line; an error is one line, and the prompt continues. Returns whether there was a line."""
        was_asked = False
        for line in lines:
            was_asked = True
            try:
                write(self.reply(line))
            except CollectorError as error:
                write(f"{error}\n")
        return was_asked

    def reply(self, line: str) -> str:
        """The answer to one line.

        Raises:
            CollectorError: the line is invalid or cannot be answered.
        """
        command = commands.parse_line(line, self.options)
        if command.name == "":
            return str(self.options)
        if command.name == "help":
            return commands.help_text(command.words)
        if command.name == "set":
            self.options = command.options
            return ""
        return self._answer(command)


def interact(prompt: Prompt, unattended: Callable[[], str] | None = None) -> None:
    """Runs on the terminal with completion and history, or plainly if input is piped.

    If input is empty or output is redirected, the answer is that of ``unattended``; None: the scope view.
    """
    is_typed = sys.stdin is not None and sys.stdin.isatty()
    if not is_typed or not sys.stdout.isatty():
        if is_typed or not prompt.run(sys.stdin or (), terminal.write):
            terminal.write(prompt.reply("scope") if unattended is None else unattended())
        return
    try:
        lines = _edited_lines()
    except ImportError:
        terminal.write("For completion and history: pip install 'cupti-collector[prompt]'\n")
        lines = _plain_lines()
    prompt.run(lines, _write_colored if terminal.shows_colours(sys.stdout) else terminal.write)


def _write_colored(text: str) -> None:
    """Writes text in colours that depend on the content of each column; names stand out, nothing is dimmed."""
    from rich.console import Console
    from rich.text import Text

    styled = Text(terminal.printable_lines(text))
    styled.highlight_regex(r"(?m)^node name \|.*$", "bold")
    styled.highlight_regex(r"(?m)^ *\S+(?= \()", "cyan")
    styled.highlight_regex(r"(?<![\w.])\d+(?:\.\d+)?(?:ms|sec|MB|m|b)\b", "bold yellow")
    styled.highlight_regex(r"(?<![\w.])0(?:us|B)/0(?:us|B)|--/", "dim")
    Console(soft_wrap=True, highlight=False).print(styled, end="")


def _plain_lines() -> Iterator[str]:
    while True:
        try:
            yield input(PROMPT)
        except EOFError:
            return


def _edited_lines() -> Iterator[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import FileHistory

    path = history_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    session: PromptSession[str] = PromptSession(history=FileHistory(str(path)), completer=completer())

    def lines() -> Iterator[str]:
        while True:
            try:
                yield session.prompt(PROMPT)
            except KeyboardInterrupt:
                continue
            except EOFError:
                return

    return lines()


def history_path() -> Path:
    """The file of the typed lines."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "collector" / "prof_history"


_VALUES: dict[str, Iterable[str]] = {
    "select": ATTRIBUTES,
    "order_by": ORDERS,
    "output": OUTPUTS,
    "account_displayed_op_only": ("true", "false"),
}
"""Option -> the words that its value consists of."""


def completer() -> Completer:
    """Completes commands, options, and values that consist of words."""
    from prompt_toolkit.completion import Completer, Completion

    class Words(Completer):
        def get_completions(self, document: Any, complete_event: Any) -> Iterator[Completion]:
            begun, choices = completions(document.text_before_cursor)
            for choice in choices:
                yield Completion(choice, start_position=-len(begun))

    return Words()


def completions(text: str) -> tuple[str, list[str]]:
    """The word that begins at the end of ``text``, and its completions."""
    words = text.split()
    begun = "" if not text or text[-1].isspace() else words.pop()
    if not words:
        return begun, [name for name in commands.COMMANDS if name.startswith(begun)]
    option = words[-1].lstrip("-") if words[-1].startswith("-") else ""
    if option in _VALUES:
        begun = begun.rpartition(",")[2]
        return begun, [word for word in _VALUES[option] if word.startswith(begun)]
    if words[0] == "help":
        known: Iterable[str] = (*commands.COMMANDS, *commands.OPTIONS, *commands.advice_options())
        return begun, [word for word in known if word.startswith(begun.lstrip("-"))]
    known = commands.advice_options() if words[0] == "advise" else commands.OPTIONS
    return begun, [f"-{name}" for name in known if f"-{name}".startswith(begun)]
