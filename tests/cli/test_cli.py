"""The command: its subcommands and its error messages."""

from __future__ import annotations

import argparse
import contextlib
import errno
import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import collector.cli
from collector.cli import command_parser, info, main, subcommands
from collector.recording.recording import Recording
from collector.stepstats.from_recording import run_metadata
from tests.support.file_permissions import permissions_hold


@pytest.fixture
def step_file(step_capture, tmp_path) -> Path:
    """A recorded step as RunMetadata."""
    path = tmp_path / "step.pb"
    path.write_bytes(run_metadata(Recording.from_capture(step_capture)).SerializeToString())
    return path


def files_of(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_every_module_of_the_package_is_a_subcommand_with_help(capsys):
    assert {"demo", "info", "timeline"} <= set(subcommands())
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    for name in subcommands():
        assert re.search(rf"\n    {name}\s+\w", text)


@pytest.mark.parametrize("name", subcommands())
def test_every_subcommand_explains_itself(name, capsys):
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: collector {name}")


@pytest.mark.parametrize("asked_for", ["info", "--version"])
def test_only_the_subcommand_asked_for_is_imported(asked_for):
    program = (
        "import atexit, sys; from collector.cli import main\n"
        "@atexit.register\n"
        "def others():\n"
        "    found = [m for m in sys.modules if m.startswith('collector.cli.') and '._' not in m]\n"
        f"    print(set(found) - {{'collector.cli.{asked_for}'}} or '', end='', file=sys.stderr)\n"
        f"main(['{asked_for}'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "arguments", [["bogus"], ["timeline"], ["timeline", "a.pb"], ["demo", "--bogus"]], ids=" ".join
)
def test_a_wrong_command_line_is_one_line_and_status_2(arguments, capsys):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("collector: ")
    assert printed.err.count("\n") == 1


def test_without_arguments_it_shows_examples(capsys):
    assert main([]) == 0
    printed = capsys.readouterr()
    commands = [line.split()[1] for line in printed.out.splitlines() if line.startswith("collector ")]
    assert len(commands) == 3
    assert set(commands) <= set(subcommands())
    assert printed.err == ""


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (["sumary", "a.pb"], "did you mean summary?"),
        (["stats", "a.pb", "--quesiton", "idle"], "did you mean --question?"),
        (["stats", "a.pb", "--quesiton=idle"], "did you mean --question?"),
        (["demo", "--simulated"], "did you mean --simulate?"),
        (["timeline", "a.pb", "--outptu", "b.json"], "unrecognized arguments: --outptu b.json; did you mean --output?"),
        (["ui", "a.pb", "--profile_contxt_path", "c"], "did you mean --profile_context_path?"),
        (["--isolatde"], "unrecognized arguments: --isolatde; did you mean --isolated? (see: collector --help)"),
    ],
)
def test_a_misspelled_word_is_answered_with_the_most_similar_valid_one(arguments, suggestion, capsys):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert suggestion in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["compare", "a1.pb", "a2.pb", "b1.pb", "b2.pb"],
            "unrecognized arguments: b1.pb b2.pb; collector compare takes BEFORE and NOW: put a pattern of names in "
            "quotes (see: collector compare --help)",
        ),
        (["timeline", "a.pb", "b.pb"], "arguments: b.pb; collector timeline takes one FILE (see: collector timeline"),
        (["demo", "a.pb"], "unrecognized arguments: a.pb (see: collector demo --help)"),
    ],
)
def test_more_files_than_a_command_takes_are_answered_with_what_it_takes(arguments, message, capsys):
    """As a shell makes them of a pattern without quotes."""
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["stats", "a.pb", "--question", "idel"], "argument --question: invalid choice: 'idel'; did you mean idle?"),
        (["stats", "a.pb", "--question", "zzz"], "argument --question: invalid choice: 'zzz'"),
        (
            ["run", "--wait", "everything", "a"],
            "argument --wait: invalid choice: 'everything' (choose from 'program', 'all')",
        ),
    ],
)
def test_a_long_list_of_valid_words_is_left_to_the_help(arguments, message, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    printed = capsys.readouterr().err.replace("from program, all", "from 'program', 'all'")  # CPython 3.12 and newer
    assert printed == f"collector: {message} (see: collector {arguments[0]} --help)\n"


def test_a_missing_command_is_an_error(capsys):
    with pytest.raises(SystemExit):
        main(["--isolated"])
    assert "the following arguments are required: COMMAND" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["quux"], ["--foo"], ["demo", "--quux"], ["timeline", "a.pb", "b.pb", "-o", "c.json"]]
)
def test_a_word_that_resembles_no_valid_one_is_answered_without_a_suggestion(arguments, capsys):
    with pytest.raises(SystemExit):
        main(arguments)
    printed = capsys.readouterr().err
    assert printed.startswith("collector: ")
    assert "did you mean" not in printed


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (["sql", "runs", "--csv", "select 1"], {"csv": True, "words": ["runs", "select 1"]}),
        (
            ["stats", "a", "--json", "b", "--rows", "3", "c"],
            {"json": True, "inputs": [Path("a"), Path("b"), Path("c")]},
        ),
        (["compare", "a", "--by", "op", "b"], {"by": ["op"], "before": "a", "now": "b"}),
        (["attach", "12", "record", "-q", "5s"], {"process": 12, "action": "record", "duration": 5.0}),
        (["merge", "a", "-o", "b.json", "--", "-c"], {"inputs": [Path("a"), Path("-c")]}),
        (
            ["report", "a", "--before", "b", "-o", "c.html", "d"],
            {"before": [Path("b")], "inputs": [Path("a"), Path("d")]},
        ),
        (["run", "-o", "a", "program", "-o", "b"], {"output": "a", "program": ["program", "-o", "b"]}),
        (["prof", "a", "op", "-step", "3"], {"words": ["a", "op", "-step", "3"]}),
    ],
    ids=" ".join,
)
def test_options_may_stand_between_other_arguments(words, given):
    parsed = vars(command_parser(words).parse_args(words))
    assert {name: parsed[name] for name in given} == given


def test_an_unknown_option_refers_to_the_help_of_its_subcommand(capsys):
    with pytest.raises(SystemExit):
        main(["demo", "--bogus"])
    assert "(see: collector demo --help)" in capsys.readouterr().err


def test_the_version_is_reported(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out.startswith("collector ")


@pytest.mark.medium
def test_it_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "collector", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("collector ")


# --- timeline


@pytest.mark.parametrize("name", ["out.json", "out.json.gz"])
def test_timeline_turns_a_step_into_a_chrome_trace(step_file, name, capsys):
    output = step_file.with_name(name)
    assert main(["timeline", str(step_file), "-o", str(output)]) == 0
    data = output.read_bytes()
    trace = json.loads(gzip.decompress(data) if name.endswith(".gz") else data)
    devices = {event["args"]["device"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
    assert "/gpu:0/memcpy" in devices
    assert capsys.readouterr().err == ""


def test_timeline_reads_recordings(step_capture, tmp_path):
    Recording.from_capture(step_capture).save(tmp_path / "step.gpurec")
    assert main(["timeline", str(tmp_path / "step.gpurec"), "-o", str(tmp_path / "out.json")]) == 0
    assert json.loads((tmp_path / "out.json").read_text())["traceEvents"]


BROKEN = {
    "foreign.pb": b"\x7fELF this is not a step",
    "text.pb": b"hello, world\n",
    "truncated.json": b'{"traceEvents": [{"ph": ',
    "foreign.json": b'{"a": 1}',
    "cut.gpurec": b"PK\x03\x04",
    "cut.json.gz": gzip.compress(b"{" * 1000)[:15],
}


@pytest.mark.parametrize("name", [*BROKEN, "absent.pb"])
def test_a_broken_file_is_one_line_naming_it_and_nothing_is_written(name, tmp_path, capsys):
    if name in BROKEN:
        (tmp_path / name).write_bytes(BROKEN[name])
    before = files_of(tmp_path)
    assert main(["timeline", str(tmp_path / name), "-o", str(tmp_path / "out.json")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("collector: ")
    assert name in printed.err
    assert printed.err.count("\n") == 1
    assert files_of(tmp_path) == before


@pytest.mark.parametrize("output", ["out.txt", "absent/out.json", "folder.json", "absent/again.gpurec"])
def test_an_output_that_cannot_be_written_is_one_line_naming_it(output, step_file, capsys):
    (step_file.parent / "folder.json").mkdir()
    before = files_of(step_file.parent)
    assert main(["timeline", str(step_file), "-o", str(step_file.parent / output)]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith("collector: ")
    assert output in printed
    assert printed.count("\n") == 1
    assert files_of(step_file.parent) == before


def test_a_failed_conversion_leaves_the_output_that_was_there(step_file, tmp_path):
    output = tmp_path / "out.json"
    output.write_text("before")
    (tmp_path / "broken.pb").write_bytes(b"\x7fELF")
    assert main(["timeline", str(tmp_path / "broken.pb"), "-o", str(output)]) == 2
    assert output.read_text() == "before"


@pytest.mark.parametrize("name", subcommands())
def test_words_that_are_no_value_of_an_option_are_explained(name):
    """Of other exceptions argparse makes "invalid _seconds value", with the name of the function that raised it."""
    for action in command_parser([name]).subcommand_parsers[name]._actions:
        for word in ("", "x", "-1", "nan", "[", "²", "9" * 30):
            with contextlib.suppress(argparse.ArgumentTypeError):
                if action.type is not None:
                    action.type(word)


# --- info

FOUND = {
    "available": True,
    "error": "",
    "cause": "",
    "remedy": "",
    "driver_path": "/usr/lib/libcuda.so.1",
    "driver_version": 13010,
    "cupti_path": "/opt/libcupti.so.13",
    "cupti_api_version": 130100,
    "cuda_version": 13010,
    "features": {"cluster_size": True, "graph_node_id": False},
    "devices": [{"ordinal": 0, "name": "H100"}],
    "simulated": False,
}


def checked(found):
    return {each.name: each for each in info.checks_of("native", found)}


def test_info_names_the_driver_and_libcupti():
    checks = checked(FOUND)
    assert (checks["tracing"].state, checks["tracing"].text) == ("ok", "available")
    assert checks["driver"].text == "/usr/lib/libcuda.so.1 (CUDA 13.1)"
    assert checks["libcupti"].text == "/opt/libcupti.so.13 (CUDA 13.1, API version 130100)"
    assert (checks["features"].text, checks["without"].text) == ("cluster_size", "graph_node_id")
    assert checks["device 0"].text == "H100"
    assert "simulated" not in checks


def test_info_names_the_cause_and_the_remedy_where_nothing_can_be_traced():
    checks = checked({"available": False, "cause": "no driver", "remedy": "Install it"})
    assert checks["tracing"] == ("tracing", "failed", "unavailable: no driver", "Install it")
    assert checks["driver"].state == "note"
    assert not {"libcupti", "features"} & set(checks)


def run_info(monkeypatch, capsys, found, *options, terminal: bool) -> str:
    class Source:
        name = "native"

        def probe(self):
            return found

    monkeypatch.setattr("collector.sources.open_source", lambda name: Source())
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    monkeypatch.setenv("TERM", "xterm")
    assert main(["info", *options]) == 0
    return capsys.readouterr().out


def test_info_is_plain_lines_when_piped(monkeypatch, capsys):
    lines = run_info(monkeypatch, capsys, FOUND, terminal=False).splitlines()
    assert "✓ driver: /usr/lib/libcuda.so.1 (CUDA 13.1)" in lines
    assert all(re.match("[✓✗!·] .+: .", line) for line in lines)


@pytest.mark.parametrize("terminal", [False, True])
def test_info_prints_control_characters_of_names_escaped(terminal, monkeypatch, capsys):
    evil = "a\x1b[31mb\nc"
    found = {
        **FOUND,
        "devices": [{"ordinal": 0, "name": evil}],
        "cupti_path": f"/opt/{evil}.so",
        "cupti_passed_over": [(f"/opt/{evil}.so.12", evil)],
        "features": {evil: True},
    }
    monkeypatch.setenv("COLLECTOR_LIBCUPTI", f"/tmp/{evil}")
    monkeypatch.setenv("CUDA_INJECTION64_PATH", f"/tmp/{evil}")
    monkeypatch.setenv("COLUMNS", "400")
    text = run_info(monkeypatch, capsys, found, terminal=terminal)
    assert r"a\x1b[31mb\nc" in text
    assert "\x1b[31mb" not in text
    assert not any(line.lstrip().startswith("c") and "collector" not in line for line in text.splitlines())


def test_info_names_copies_of_nvtx_that_were_used_too_early(monkeypatch, capsys):
    monkeypatch.setattr("collector.tracing.nvtx.missed_copies", lambda: ["/opt/libnccl.so"])
    assert (
        "! NVTX: /opt/libnccl.so was used before the handler was armed: its ranges are not seen. "
        "Set COLLECTOR_NVTX=1 before the program begins"
    ) in run_info(monkeypatch, capsys, FOUND, terminal=False).splitlines()


def test_info_prints_why_a_libcupti_was_passed_over(monkeypatch, capsys):
    monkeypatch.setattr("collector.sources.machine_checks.cupti_candidates", lambda: ["/opt/a.so", "/opt/b.so"])
    found = {**FOUND, "cupti_path": "/opt/b.so", "cupti_passed_over": [("/opt/a.so", "it answers 999")]}
    lines = run_info(monkeypatch, capsys, found, terminal=False).splitlines()
    assert "· libcupti found: /opt/a.so (passed over: it answers 999)" in lines
    assert "· libcupti found: /opt/b.so (taken)" in lines


def test_info_is_a_table_on_a_terminal(monkeypatch, capsys):
    text = run_info(monkeypatch, capsys, {**FOUND, "driver_path": "/x[red]"}, terminal=True)
    assert "available" in text
    assert "/x[red]" in text
    assert "tracing: " not in text


def test_info_names_the_cause_where_a_source_cannot_even_be_opened(monkeypatch, capsys):
    def refuse(name):
        raise collector.CuptiUnusableError("the native extension cannot be loaded", "Install it again")

    monkeypatch.setattr("collector.sources.open_source", refuse)
    assert main(["info"]) == 1
    text = capsys.readouterr().out
    assert "✗ tracing: unavailable: the native extension cannot be loaded. Install it again" in text


def test_info_as_json(monkeypatch, capsys):
    text = run_info(monkeypatch, capsys, FOUND, "--json", terminal=True)
    found = json.loads(text)
    assert (found["available"], found["source"]) == (True, "native")
    assert {"name": "device 0", "state": "ok", "text": "H100", "remedy": ""} in found["checks"]


@pytest.mark.medium
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_closed_stream_is_no_trouble(closed, tmp_path):
    (tmp_path / "program.sh").write_text("exit 5")
    command = f"{sys.executable} -m collector run -q sh program.sh {closed}"
    assert subprocess.run(["sh", "-c", command], check=False, cwd=tmp_path).returncode == 5
    info_status = subprocess.run(["sh", "-c", f"{sys.executable} -m collector info {closed}"], check=False).returncode
    assert info_status == subprocess.run([sys.executable, "-m", "collector", "info"], capture_output=True).returncode


def test_a_reader_that_has_seen_enough_is_no_trouble():
    command = f"{sys.executable} -m collector info | true"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.medium
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "words",
    [[], ["--help"], ["--version"], ["info"], ["summary", "STEP"], ["stats", "STEP", "--json"], ["completion", "bash"]],
    ids=" ".join,
)
def test_a_full_output_is_one_line_and_status_2(words, unbuffered, step_file, monkeypatch):
    if "completion" in words:
        pytest.importorskip("shtab")
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    command = [sys.executable, "-m", "collector", *(str(step_file) if word == "STEP" else word for word in words)]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert done.stderr.startswith("collector: cannot write standard output: No space left on device")


def test_an_error_that_is_not_of_writing_writes_nothing(monkeypatch, capsys):
    """Standard output may be that of a program, which another program reads."""

    def fail(_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(info, "run", fail)
    with pytest.raises(OSError, match="Too many open files"):
        main(["info"])
    assert capsys.readouterr().out == ""


def test_a_reader_of_help_that_has_seen_enough_is_no_trouble():
    command = f"{sys.executable} -m collector info --help | true"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_sketch_of_a_subcommand_is_one(root, load_module, step_file, tmp_path, capsys):
    page = (root / "docs/architecture.md").read_text(encoding="utf-8")
    (sketch,) = re.findall(r"<!-- not run: a sketch -->\n```python\n(.*?)```", page, re.DOTALL)
    path = tmp_path / "count.py"
    path.write_text(sketch)
    command, parser = load_module(path), argparse.ArgumentParser()
    command.add_arguments(parser)
    assert command.run(parser.parse_args([str(step_file)])) == 0
    assert capsys.readouterr().out == f"{len(collector.load(step_file).kernels)}\n"
    assert re.findall(r"^ *import (\S+)", sketch, re.MULTILINE) == ["argparse"]  # no room imports the package itself


def test_an_interrupt_ends_quietly(monkeypatch):
    def interrupt(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(info, "run", interrupt)
    assert main(["info"]) == 130


def test_a_file_without_permission_is_one_line(step_file, capsys):
    step_file.chmod(0)
    with permissions_hold():
        assert main(["timeline", str(step_file), "-o", str(step_file.with_suffix(".json"))]) == 2
    assert capsys.readouterr().err.count("\n") == 1
