"""The examples of docs/pytest.md in order: files are saved, commands run, and their output is compared.

With COLLECTOR_UPDATE_PAGE=1 the outputs are written into the page instead; read the difference before you commit it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from plugin_runs import needs_lines, run

from collector.testing.plugin import _OPTIONS, FIXTURE_NAMES, MARKER_NAMES
from collector.testing.plugin.limits import LIMITS
from collector.testing.simulator.simulator_library import library_path

pytestmark = pytest.mark.simulator

pytest_plugins = ["pytester"]

BLOCK = re.compile(r"(?:<!-- not run: saved as (\S+) -->\n)?^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COLUMNS = 100
COLLECTED = r"(?:collected \d+ items?[^\n]*|\d+ workers? \[[^\n]*)"
HEADER = re.compile(rf"=+ test session starts =+\n.*?^{COLLECTED}\n+", re.MULTILINE | re.DOTALL)
JQ = re.compile(r"""jq '\.tests\[\] \| select\(\.nodeid == "(.*?)"\) \| \.phases\.call' (\S+)""")
# With lines, as the page shows them from Python 3.12 on.
INI = """
[pytest]
gpu_lines = true
addopts = -p no:hypothesispytest -p no:cacheprovider -p no:timeout{more}
filterwarnings = ignore:Module already imported so cannot be rewritten:pytest.PytestAssertRewriteWarning
"""


@pytest.fixture(scope="module")
def page(root):
    return root / "docs" / "pytest.md"


@pytest.fixture
def reader(pytester, monkeypatch):
    """Somebody whose driver lists no GPU, at a terminal of 100 columns."""
    for name in ("COLLECTOR_LIBCUDA", "COLLECTOR_LIBCUPTI"):
        monkeypatch.setenv(name, str(library_path()))
    monkeypatch.setenv("COLLECTOR_SIMULATED_DEVICES", "0")
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return Reader(pytester)


class Reader:
    """Types commands in a folder of its own."""

    def __init__(self, pytester):
        self._pytester = pytester
        self._folder = pytester.path

    def save(self, name, text):
        (self._folder / name).write_text(text, encoding="utf-8")

    def types(self, line):
        """Everything that a command prints, as the page shows it."""
        if found := JQ.fullmatch(line):  # which is not everywhere, and is another's to test
            tests = json.loads((self._folder / found[2]).read_text())["tests"]
            (one,) = (test for test in tests if test["nodeid"] == found[1])
            return json.dumps(one["phases"]["call"], indent=2) + "\n"
        words = shlex.split(line)
        variables = [word.partition("=") for word in words if re.match(r"[A-Z]+=", word)]
        if words[len(variables)] != "pytest":
            command = line.replace("python ", f"{shlex.quote(sys.executable)} ", 1)
            return self._shown(subprocess.run(command, shell=True, cwd=self._folder, capture_output=True, text=True))
        with pytest.MonkeyPatch.context() as patch:
            for name, _, value in variables:
                patch.setenv(name, value)
            more = "" if "--benchmark" in line else " -p no:benchmark"
            done = run(self._pytester, None, *words[len(variables) + 1 :], ini=INI.format(more=more))
        return self._shown(done, workers="-n" in words)

    def _shown(self, done, *, workers=False):
        """Output without what differs from one machine, folder or run to another."""
        out, error = (str(text) for text in (done.stdout, done.stderr))
        text = HEADER.sub("", f"{out.strip(chr(10))}\n{error}").strip("\n")
        text = text.replace(str(self._folder), "/project").replace(str(Path("/project").resolve()), "/project")
        text = re.sub(r"^=+ (.* in )\d+\.\d+s(?: \([\d:]+\))? =+$", _centred, text, flags=re.MULTILINE)
        text = re.sub(r"\d+\.\d+s\b", "0.12s", text)
        text = re.sub(r"^\[gw\d+\] \w+ -- Python .*\n", "", text, flags=re.MULTILINE)
        text = re.sub(r"^-+ (generated xml file: .*) -+$", r"--- \1 ---", text, flags=re.MULTILINE)
        text = re.sub(r'time="\d+\.\d+"', 'time="0.012"', text)
        text = re.sub(r" at 0x[0-9a-f]+", " at 0x7f0123456789", text)
        text = re.sub(r"\(time in \w+\)", "(time in us)", text)
        if workers:  # whichever was faster
            text = re.sub(r"^[.FEs]+(?= +\[)", lambda dots: "".join(sorted(dots[0])), text, flags=re.MULTILINE)
        return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def _centred(found):
    """pytest's last line as it is after 0.12 s: one that took 10 s is shorter by a sign."""
    title = f" {found[1]}0.12s "
    return f"{'=' * ((COLUMNS - len(title)) // 2)}{title}".ljust(COLUMNS, "=")


def outputs(text, reader):
    """The page with every command's output as it is here."""

    def fresh(block):
        name, language, content = block.groups()
        if language == "python":
            assert name, f"a file of the page has no name: {content[:60]}"
            reader.save(name, content)
            return block[0]
        commands = [line for line in content.splitlines() if line.startswith("$ ")]
        lines = "".join(f"{command}\n{reader.types(command[2:])}" for command in commands)
        return f"```console\n{lines}```"

    return BLOCK.sub(fresh, text)


@pytest.mark.slow
@needs_lines
def test_the_page_shows_what_happens(page, reader):
    for package in ("xdist", "pytest_benchmark"):
        pytest.importorskip(package)
    if int(pytest.__version__.split(".")[0]) < 9:
        pytest.skip("the page shows what pytest 9 prints")
    text = page.read_text(encoding="utf-8")
    now = outputs(text, reader)
    if os.environ.get("COLLECTOR_UPDATE_PAGE"):
        page.write_text(now, encoding="utf-8")
    assert now.splitlines() == text.splitlines()


def test_a_page_that_lies_is_caught(reader):
    lie = "```console\n$ pytest test_x.py -q\n2 passed in 0.12s\n```"
    reader.save("test_x.py", "def test_x(): pass\n")
    assert outputs(lie, reader).splitlines()[-2] == "1 passed in 0.12s"


def test_the_page_names_every_option_marker_fixture_and_limit(page):
    text = page.read_text(encoding="utf-8")
    for name in [*(option for option, *_ in _OPTIONS), *MARKER_NAMES, *FIXTURE_NAMES, *LIMITS]:
        assert re.search(rf"`{re.escape(name)}\b", text), name
    for option, *_ in _OPTIONS[:-1]:
        assert f"`{option.removeprefix('--').replace('-', '_')}" in text, option
