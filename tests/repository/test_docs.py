"""The examples of README and docs: Python runs, printed results are compared, and commands exist.

Every page is run from top to bottom as one reader would, in one interpreter, on a simulated GPU. A block that needs
what this machine has not says so in the comment above it: `<!-- not run: needs PyTorch -->`. Python that is a file of
the reader's says its name, `<!-- file: train.py -->`; commands whose output is compared have `<!-- checked -->` above.
A page whose examples open a simulated GPU themselves says `<!-- page: opens its own simulated GPU -->`.
"""

from __future__ import annotations

import ast
import builtins
import doctest
import itertools
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LONG = ("analysis.md", "profiler.md", "sql.md", "tracing.md")
"""Pages whose examples take seconds."""
BESIDE_DOCS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "RELEASING.md"]
PAGES = [*BESIDE_DOCS, *sorted((ROOT / "docs").rglob("*.md"))]

# What a page takes for granted: a program that uses a GPU.
PROLOGUE = """
import contextlib
import shlex
import sys
from collector.cli import main
from collector.testing import SimulatedGpu

def shell(line):
    words, _, questions = line.partition(" < ")
    with contextlib.ExitStack() as stack:
        if questions:
            before, sys.stdin = sys.stdin, stack.enter_context(open(questions))
            stack.callback(setattr, sys, "stdin", before)
        status = main(shlex.split(words)[1:])
        if status:
            print("exit status", status)

def launch_some_kernels():
    gpu.memcpy("HtoD", 1 << 20, stream=7)
    gpu.launch("sgemm", stream=7, duration_ns=12_000, grid=(32, 32, 1), block=(256, 1, 1))
    gpu.launch("relu", stream=7, duration_ns=3_000)

train_step = launch_some_kernels
"""
WITH_GPU = """
gpu = SimulatedGpu(cuda="12.4", start_ns=1_700_000_000_000_000_000)
gpu.__enter__()
"""
OPENS_ITS_OWN = "<!-- page: opens its own simulated GPU -->"


class Block(NamedTuple):
    language: str
    text: str
    line: int
    skipped: str
    file: str = ""
    is_checked: bool = False


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found = []
    text = page.read_text(encoding="utf-8")
    pattern = r"(?:<!-- (not run|file|checked)(?:: ([^\n]*?))? -->\n+)?^```(\w+)\n(.*?)^```$"
    for match in re.finditer(pattern, text, re.MULTILINE | re.DOTALL):
        fields = {match[1]: match[2] or ""} if match[1] else {}
        line = text[: match.start(4)].count("\n") + 1
        skipped, file, is_checked = fields.get("not run", ""), fields.get("file", ""), "checked" in fields
        found.append(Block(match[3], match[4], line, skipped, file, is_checked))
    return found


def session_of(console: str) -> str:
    """Commands and what they print, as a Python session. A leading ``...`` stands for the first lines."""
    lines = []
    for line in console.splitlines():
        if line.startswith("$ "):
            lines.append(f">>> shell({line[2:]!r})")
        elif line == "..." and lines[-1].startswith(">>>"):
            lines += ["<BLANKLINE>", "..."]
        else:
            lines.append(line or "<BLANKLINE>")
    return "\n".join(lines) + "\n"


def script_of(page: Path) -> str:
    """The page's Python as one program; sessions with >>> are compared with what they print."""
    has_gpu = OPENS_ITS_OWN not in page.read_text(encoding="utf-8")
    lines = [PROLOGUE, WITH_GPU if has_gpu else "", "import doctest", "names = globals()"]
    for block in blocks(page):
        if block.skipped or not (block.language in ("python", "pycon") or block.is_checked):
            continue
        where = block.file or f"{page.name}, line {block.line}"
        if block.language != "python":
            text = session_of(block.text) if block.language == "console" else block.text
            lines.append(
                f"test = doctest.DocTestParser().get_doctest({text!r}, names, {where!r}, {str(page)!r}, 0)\n"
                "runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)\n"
                "assert runner.run(test, clear_globs=False).failed == 0\n"
                "names.update(test.globs)"
            )
        else:
            lines.append(f"exec(compile({block.text!r}, {where!r}, 'exec'), names)")
    if has_gpu:
        lines.append("gpu.__exit__(None, None, None)")
    return "\n".join(lines)


def shows_python(page: Path) -> bool:
    return any(block.language in ("python", "pycon") and not block.skipped for block in blocks(page))


@pytest.mark.simulator
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=pytest.mark.slow if page.name in LONG else pytest.mark.medium)
        for page in filter(shows_python, PAGES)
    ],
)
def test_what_a_page_shows_happens(page: Path, tmp_path: Path) -> None:
    pytest.importorskip("collector._native", reason="the native extension is not built")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script_of(page)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.simulator
def test_a_page_that_lies_is_caught(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```pycon\n>>> 1 + 1\n3\n```\n")
    script = script_of(page).replace(PROLOGUE, "").replace(WITH_GPU, "").replace("gpu.__exit__(None, None, None)", "")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Expected:\n    3\nGot:\n    2" in done.stdout


@pytest.mark.medium
@pytest.mark.simulator
def test_a_command_that_prints_something_else_is_caught(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- checked -->\n```console\n$ collector prof help op\nyesterday\n```\n")
    done = subprocess.run([sys.executable, "-c", script_of(page)], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "Expected:\n    yesterday\nGot:\n    op: by op type" in done.stdout


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_of_a_page_exist(page: Path) -> None:
    """`make TARGET` names a target of the Makefile, `collector COMMAND` one that --help lists."""
    subcommands = {path.stem for path in (ROOT / "collector/cli").glob("[!_]*.py")}
    for block in blocks(page):
        if block.language not in ("console", "sh") or block.skipped:
            continue
        lines = block.text.splitlines()
        typed = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]  # the others are what it prints
        for line in typed or lines:
            words = shlex.split(line, comments=True)
            if words[:1] == ["make"]:
                targets = [word for word in words[1:] if "=" not in word]
                assert set(targets) <= make_targets(), f"{page.name}: {line}"
            if words[:1] == ["collector"] and len(words) > 1 and not words[1].startswith("-"):
                assert words[1] in subcommands, f"{page.name}: {line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_of_a_page_are_there(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:", target):
            file, _, heading = target.partition("#")
            linked = page.parent / file if file else page
            assert linked.exists(), f"{page.name}: {target}"
            if heading:
                headings = re.findall(r"^#+ (.*)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
                slugs = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in headings}
                assert heading in slugs, f"{page.name}: {target}"


def test_every_picture_is_shown_by_a_page() -> None:
    """A picture that no page shows is not drawn anew when the product changes."""
    shown = {
        (page.parent / target).resolve()
        for page in PAGES
        for target in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    }
    pictures = [path for path in (ROOT / "docs/images").rglob("*") if path.is_file()]
    assert pictures
    assert [path.name for path in pictures if path.resolve() not in shown] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_level_of_headings_is_left_out(page: Path) -> None:
    """The site of the documentation cannot be built otherwise."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    levels = [len(marks) for marks in re.findall(r"^(#+) ", text, re.MULTILINE)]
    assert levels[0] == 1
    assert [new for last, new in itertools.pairwise(levels) if new > last + 1] == []


def test_every_docstring_example_of_the_public_package_parses() -> None:
    """They are sketches around a user's own program, so they are only parsed."""
    parser = doctest.DocTestParser()
    examples = 0
    for path in sorted((ROOT / "collector").rglob("*.py")):
        if path.name.endswith("_pb2.py"):
            continue
        for docstring in re.findall(r'"""(.*?)"""', path.read_text(encoding="utf-8"), re.DOTALL):
            for example in parser.get_examples(docstring):
                compile(example.source, str(path), "single")
                examples += 1
    assert examples > 10


# --- names that examples take for granted


def python_of(block: Block) -> str:
    if block.language == "pycon":
        return "\n".join(example.source for example in doctest.DocTestParser().get_examples(block.text))
    return block.text


def names_of(program: str) -> tuple[set[str], set[str]]:
    """The names that a program reads, and those that it defines."""
    read, defined = set(), set()
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else defined).add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            defined |= {each.asname or each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            defined.add(node.name)
        elif isinstance(node, ast.arg):
            defined.add(node.arg)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            defined.add(node.name)
    return read, defined


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_that_examples_do_not_define_are_introduced_before_them(page):
    """As `name` in the text above; else a reader meets an undefined name."""
    lines = page.read_text(encoding="utf-8").splitlines()
    known, unknown = set(dir(builtins)) | {"__name__", "__file__"}, []
    for block in blocks(page):
        if block.language not in ("python", "pycon") or block.file:
            continue
        try:
            read, defined = names_of(python_of(block))
        except SyntaxError:  # with `await` or `%%collector`, of a notebook
            continue
        known |= defined
        said = " ".join(lines[: block.line])
        missing = {name for name in read - known if not re.search(rf"`(?:\w+\.)?{name}\b", said)}
        unknown += [f"line {block.line}: {name}" for name in sorted(missing)]
    assert unknown == []
