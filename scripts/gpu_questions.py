"""Ask a card how it, its driver and its libcupti behave where documentation says nothing, and write what was observed.

    gpu_questions.py [FOLDER]               on a machine with a GPU; the answers go to FOLDER ($OUT, else out/questions)
    gpu_questions.py --only graphs,hang     these alone; they join the answers that the folder has
    gpu_questions.py --without graphs,hang  all but these
    gpu_questions.py --libraries FOLDER     also try every libcupti.so* below a folder (plain, .xz, .gz or .bz2)
    gpu_questions.py --simulated            tries the questions out on the simulator

It does not judge: the tests in tests/gpu do that. Each question, or each part of it, runs in a process of its own with
a time limit, because some crash, hang or make the context unusable. How that process ended, and the last lines that it
printed, then belong to the answer. `questions.md` and `questions.json` are written after each question.
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts" / "card"))

import clock_questions  # noqa: E402
import cost_questions  # noqa: E402
import detach_questions  # noqa: E402
import fault_questions  # noqa: E402
import flush_questions  # noqa: E402
import graph_questions  # noqa: E402
import library_questions  # noqa: E402
import load_questions  # noqa: E402
import peer_copy_questions  # noqa: E402
import record_questions  # noqa: E402
from asked_apart import ended  # noqa: E402
from asked_card import Card  # noqa: E402
from notes import Notes, all_figures, read_notes  # noqa: E402
from raw_cupti import NotOfferedError  # noqa: E402

SECONDS = 150
"""The time limit of all questions together."""
WORTHWHILE = 3
"""The least seconds left to begin a question."""
STDERR_LINES = 20
TOGETHER = 4
"""The number of processes that ask at the same time."""
ANSWERED = "ended"
SCRATCH = "gpu-questions-"
"""How the names of the folders begin in which questions have their files, one inside the other."""
_SCRATCH = re.compile(rf"(?:/[^\s/\"'()]+)*/{SCRATCH}[^\s/\"'()]+/")
_PACKAGES = re.compile(r"(?:/[^\s/\"'()]+)+/site-packages/")


@dataclass(frozen=True)
class Question:
    """A question; its function writes notes."""

    title: str
    ask: Callable[[Notes, Card, str], None]
    seconds: float
    """The time limit of each part."""
    parts: tuple[str, ...] = ("",)
    """Each part has a process of its own."""
    is_together: bool = True
    """Whether it may be asked while others are: it measures no times, and leaves the card as it is."""


QUESTIONS: dict[str, Question] = {
    "machine": Question("The machine", record_questions.machine, 20),
    "flush": Question("Records that a flush returns", flush_questions.flush, 12, tuple(flush_questions.PARTS)),
    "peer_copies": Question(
        "Graphs after sessions with copies between GPUs", peer_copy_questions.peer_copies, 60,
        peer_copy_questions.PARTS,
    ),
    "hang": Question("A kernel that does not end", fault_questions.hang, 15, ("raw", "recorder")),
    "sticky": Question(
        "An error after which the context is lost", fault_questions.sticky_error, 15, ("raw", "traced"), False
    ),
    "clocks": Question(
        "Clocks and time stamps", clock_questions.clocks, 30, tuple(clock_questions.PARTS), False
    ),
    "threads": Question(
        "Threads of buffer completions", load_questions.completing_threads, 10, ("off", "on"), False
    ),
    "call_costs": Question(
        "What the calls of an annotation cost", cost_questions.call_costs, 10, cost_questions.PARTS, False
    ),
    "detach": Question("What a client leaves behind", detach_questions.detach, 30, detach_questions.PARTS, False),
    "graphs": Question("Callbacks and ids of CUDA graphs", graph_questions.graphs, 12, graph_questions.PARTS),
    "strides": Question("Sizes of records", record_questions.strides, 15),
    "kinds": Question(
        "Activity kinds that cuptiActivityEnable accepts", record_questions.accepted_kinds, 12,
        ("without a context", "with a context"),
    ),
    "records": Question("Records that a program provokes", record_questions.provoked_records, 15),
    "libraries": Question("Other versions of libcupti with this driver", library_questions.libraries, 40),
    "driver_records": Question(
        "Records of single driver functions", record_questions.driver_records, 12, ("the function alone", "the kind")
    ),
    "subscribers": Question("Sizes that cuptiSubscribe_v2 accepts", record_questions.subscriber_sizes, 10),
    "device_name": Question("The name pointer of a DEVICE record", record_questions.device_name, 10),
    "hardware_trace": Question("cuptiActivityEnableHWTrace", record_questions.hardware_trace, 10),
    "stream_names": Question(
        "Streams that are named by NVTX", load_questions.stream_names, 12, ("collector", "libcupti")
    ),
    "torch_memory": Question(
        "Memory operations of PyTorch's allocator", load_questions.torch_memory, 30,
        ("expandable segments", "segments of fixed size"),
    ),
    "endings": Question("The end of a program under collector run", fault_questions.endings, 40, ("",), False),
    "zero_stamps": Question(
        "Time stamps at a high rate of launches", load_questions.zero_stamps, 20, ("",), False
    ),
    "ring": Question("A recorder at a high rate of launches", load_questions.ring, 30, ("",), False),
    "nvtx_cost": Question(
        "The cost of an NVTX range around a launch", load_questions.nvtx_cost, 10,
        ("nothing", "libcupti, no ranges", "libcupti, MARKER", "collector, no ranges", "collector, handler"), False,
    ),
}  # fmt: skip
"""Name -> question, in the order of importance."""

HIDDEN = {
    "step": Question("A traced step", load_questions.traced_step, 12, ("collector", "raw")),
    "graph_after_copies": Question(
        "Launches of graphs after copies", peer_copy_questions.graph_after_copies, 25, peer_copy_questions.PARTS
    ),
}
"""Asked by other questions."""


@dataclass
class Answer:
    """What came out of one part of a question."""

    end: str
    """``ended``, or how the process ended otherwise."""
    seconds: float
    notes: list[dict[str, Any]] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)
    """The last lines that the process printed."""

    @property
    def figures(self) -> dict[str, Any]:
        """All figures by name."""
        return all_figures(self.notes)

    def to_markdown(self) -> str:
        """The notes as text."""
        lines = []
        for note in self.notes:
            if "did" in note:
                lines += [f"Done: {note['did']}.", ""]
            elif "saw" in note:
                lines.append(f"- {note['saw']}")
            else:
                header, *rows = note["table"]
                texts = [[cell.replace("|", "\\|").replace("\n", " ") for cell in row] for row in (header, *rows)]
                table = [f"| {' | '.join(row)} |" for row in texts]
                lines += ["", table[0], "|" + " --- |" * len(header), *table[1:], ""]
        if self.end != ANSWERED or self.stderr:
            how = "" if self.end == ANSWERED else f"The process {self.end}. "
            lines += ["", f"{how}Its last lines on standard error:", "", "```text"]
            lines += [*(self.stderr or ["(none)"]), "```"]
        return "\n".join(lines).strip()


def ask_here(name: str, part: str, file: Path, card: Card) -> int:
    """Ask one part of a question in this process; returns the exit status."""
    faulthandler.enable()
    question = (QUESTIONS | HIDDEN)[name]
    faulthandler.dump_traceback_later(max(1.0, question.seconds - 1))  # of a hang, before the process is ended
    notes = Notes(file)
    try:
        card.prepare()
        question.ask(notes, card, part)
    except NotOfferedError as error:
        notes.saw(f"{error}")
    except Exception:
        traceback.print_exc()
        return 1
    finally:
        if failed := card.leave():
            notes.saw(f"refused at the end: {', '.join(failed)}")
    return 0


def ask(name: str, part: str, seconds: float, options: argparse.Namespace) -> Answer:
    """Ask one part of a question in a process of its own."""
    with tempfile.TemporaryDirectory(prefix=SCRATCH) as scratch:
        file, errors = Path(scratch) / "notes", Path(scratch) / "stderr"
        command = [sys.executable, str(Path(__file__).resolve()), "--ask", name, "--part", part, "--notes", str(file)]
        command += ["--simulated"] if options.simulated else []
        command += ["--libraries", str(options.libraries)] if options.libraries else []
        begin = time.monotonic()
        # Away from the checkout, whose `collector` folder may have no extension. A group of its own can be ended whole.
        with errors.open("wb") as stderr:
            process = subprocess.Popen(
                command, cwd=scratch, env=os.environ | {"TMPDIR": scratch}, stdin=subprocess.DEVNULL,
                stdout=stderr, stderr=stderr, start_new_session=True,
            )  # fmt: skip
            end = wait_for(process, seconds)
        took = time.monotonic() - begin
        printed = errors.read_text(errors="replace").splitlines()
        return Answer(end, took, read_notes(file), printed[-STDERR_LINES:])


def wait_for(process: subprocess.Popen[bytes], seconds: float) -> str:
    """Wait for a process, and end its group at the time limit; returns how it ended."""
    try:
        end = ended(process.wait(seconds))
    except subprocess.TimeoutExpired:
        threads = threads_of(process.pid)
        end = f"did not end within {seconds:.0f} s, with the threads {threads}"
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # and what a question that died has left behind
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        end += ", nor by SIGKILL"
    return end


def threads_of(process_id: int) -> str:
    """The threads of a process: name, state, and the function of the kernel in which it waits."""
    found = []
    for task in Path(f"/proc/{process_id}/task").glob("*"):
        with suppress(OSError):
            state = next(line.split()[1] for line in (task / "status").read_text().splitlines() if "State:" in line)
            place = (task / "wchan").read_text().strip("0\n") or "-"
            found.append(f"{(task / 'comm').read_text().strip()} ({state}, {place})")
    return ", ".join(sorted(found))


def ask_all(names: list[str], folder: Path, options: argparse.Namespace) -> dict[str, dict[str, Answer]]:
    """Ask questions in their order, neighbours that measure no time at once; the answers are written after each."""
    answers = earlier_answers(folder)
    for name in names:
        answers.pop(name, None)
    begin = time.monotonic()

    def limited(name: str, part: str) -> Answer:
        left = options.seconds - (time.monotonic() - begin)
        if left < WORTHWHILE:
            return Answer("was not started: no time was left", 0.0)
        return ask(name, part, min(QUESTIONS[name].seconds, left), options)

    def take(name: str, part: str, answer: Answer) -> None:
        answers.setdefault(name, {})[part] = answer
        ordered = {
            name: {part: answers[name][part] for part in question.parts if part in answers[name]}
            for name, question in QUESTIONS.items()
            if name in answers
        }
        write(ordered, folder)
        print(f"{name}{f' ({part})' if part else ''}: {answer.end} in {answer.seconds:.1f} s", flush=True)

    for is_together, group in itertools.groupby(names, key=lambda name: QUESTIONS[name].is_together):
        tasks = [(name, part) for name in group for part in QUESTIONS[name].parts]
        with ThreadPoolExecutor(min(TOGETHER, os.cpu_count() or 1) if is_together else 1) as pool:
            running = {pool.submit(limited, *task): task for task in tasks}
            for future in as_completed(running):
                take(*running[future], future.result())
    return answers


def earlier_answers(folder: Path) -> dict[str, dict[str, Answer]]:
    """The answers that the folder has, by question and part."""
    try:
        found = json.loads((folder / "questions.json").read_text())
    except (OSError, ValueError):
        return {}
    return {
        name: {
            part: Answer(answer["end"], answer["seconds"], answer["notes"], answer["stderr"])
            for part, answer in question["parts"].items()
        }
        for name, question in found.items()
    }


def write(answers: dict[str, dict[str, Answer]], folder: Path) -> None:
    """Write the answers as Markdown and as JSON."""
    seconds = sum(answer.seconds for parts in answers.values() for answer in parts.values())
    lines = [
        f"# What the card was asked\n\nAsked by `scripts/gpu_questions.py`; the questions took {seconds:.0f} s, some "
        "at the same time.\n"
    ]
    for name, parts in answers.items():
        took = sum(answer.seconds for answer in parts.values())
        lines.append(f"## {QUESTIONS[name].title}\n\n`{name}`, {took:.1f} s\n")
        for part, answer in parts.items():
            lines.append((f"### {part}\n\n" if part else "") + answer.to_markdown() + "\n")
    found = {
        name: {
            "title": QUESTIONS[name].title,
            "parts": {
                part: {
                    "end": answer.end, "seconds": round(answer.seconds, 2), "figures": answer.figures,
                    "notes": answer.notes, "stderr": answer.stderr,
                }
                for part, answer in parts.items()
            },
        }
        for name, parts in answers.items()
    }  # fmt: skip
    for file, text in (("questions.md", "\n".join(lines)), ("questions.json", json.dumps(found, indent=1))):
        partial = folder / f".{file}"
        partial.write_text(without_machine(text))
        partial.replace(folder / file)


def without_machine(text: str) -> str:
    """Any text without the folders of this machine, which the answers in the repository must not name."""
    text = _PACKAGES.sub("site-packages/", _SCRATCH.sub("", text))
    return text.replace(f"{ROOT}/", "").replace(f"{Path.home()}/", "~/")


def chosen_questions(text: str) -> list[str]:
    """The questions of ``--only``, in the order of `QUESTIONS`."""
    chosen = text.split(",")
    if unknown := [name for name in chosen if name not in QUESTIONS]:
        raise argparse.ArgumentTypeError(f"no question {', '.join(unknown)}; there are {', '.join(QUESTIONS)}")
    return [name for name in QUESTIONS if name in chosen]


def main(arguments: list[str] | None = None) -> int:
    """Ask the questions; returns the exit status, which is 0 whatever the answers are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path(os.environ.get("OUT") or ROOT / "out/questions"))
    parser.add_argument(
        "--only", type=chosen_questions, default=list(QUESTIONS), help=f"some of: {','.join(QUESTIONS)}"
    )
    parser.add_argument("--without", type=chosen_questions, default=[], help="all but some")
    parser.add_argument("--libraries", type=Path, help="a folder with other versions of libcupti")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for all questions together")
    parser.add_argument("--simulated", action="store_true", help="ask the simulator")
    parser.add_argument("--ask", choices=[*QUESTIONS, *HIDDEN], help=argparse.SUPPRESS)
    parser.add_argument("--part", default="", help=argparse.SUPPRESS)
    parser.add_argument("--notes", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.libraries:
        options.libraries = options.libraries.resolve()
    if options.ask:
        return ask_here(options.ask, options.part, options.notes, Card(options.simulated, options.libraries))
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    ask_all([name for name in options.only if name not in options.without], folder, options)
    print(f"Wrote {folder / 'questions.md'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
