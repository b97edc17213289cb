"""The folders of tests, their markers, and the time limits of a CI run."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess

import pytest

# Beside the rooms: data, what several rooms use, what runs on a card, and the tests of other folders.
OTHER_FOLDERS = {"benchmarks", "data", "gpu", "reference", "repository", "support"}
SIMULATOR = {"SimulatedGpu", "cupti_client", "plugin_runs"}
CI_LIMIT_S = 85 * 60
CI_STAGE = re.compile(r"^stage\(\) \{$.*?^\}$", re.MULTILINE | re.DOTALL)
VERSION = re.compile(r"1[2-9]0[0-9]0|1[2-9]0[0-9]{3}")
# In the order of their includes.
NATIVE_ROOMS = (
    "kinds",
    "threads",
    "cupti",
    "store",
    "capture",
    "nvtx",
    "inject",
    "simulator",
    "stepstats",
    "read",
    "analysis",
    "draw",
    "write",
    "bindings",
    "test_support",
)


def test_tests_are_in_the_folders_of_the_rooms(root):
    rooms = {folder.name for side in ("collector", "native") for folder in (root / side).iterdir() if folder.is_dir()}
    folders = {path.relative_to(root / "tests").parts[0] for path in (root / "tests").rglob("*.py")} - {"conftest.py"}
    assert folders <= rooms | OTHER_FOLDERS


@pytest.mark.medium
def test_python_knows_no_version_of_cuda(root):
    """Numbers such as 13000 and 130001; native/cupti is the one place for what depends on a version."""
    versions = [
        f"{path.name}:{node.lineno} knows {node.value}: bind a function of native/cupti/version_checks.h"
        for path in (root / "collector").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and type(node.value) is int and VERSION.fullmatch(str(node.value))
    ]
    assert versions == []


def test_names_of_test_modules_are_unique(root):
    names = sorted(path.name for path in (root / "tests").rglob("test_*.py"))
    assert names == sorted(set(names))


@pytest.mark.medium
def test_files_that_launch_on_the_simulated_gpu_have_its_marker(root):
    unmarked = []
    for path in (root / "tests").rglob("test_*.py"):
        text = path.read_text()
        if re.search(r"mark\.(simulator|viewer|gpu)\b", text):
            continue
        imported = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom):
                imported |= {node.module, *(name.name for name in node.names)}
        if imported & SIMULATOR:
            unmarked.append(path.name)
    assert unmarked == []


@pytest.mark.medium
def test_the_stages_of_a_ci_run_end_in_time_for_its_summary(root, tmp_path):
    """A stage has its own limit, and none runs on after the deadline of the run."""
    script = (root / ".ci/run").read_text()
    (deadline,) = re.findall(r"^deadline=\$\(\((\d+) \* 60\)\)$", script, re.MULTILINE)
    assert 60 * int(deadline) <= CI_LIMIT_S
    (tmp_path / "out").mkdir()
    (stage,) = CI_STAGE.findall(script)
    begun = "declare -a verdicts=() failures=()\nfailed=0\n"
    summary = "trap 'echo a summary; exit 1' INT; while true; do sleep 0.1; done"
    stages = f"stage 60 passes true\nstage 1 hangs bash -c {shlex.quote(summary)}\n"
    stages += "deadline=$((SECONDS + 1))\nstage 60 late sleep 600\n"
    shown = "stage 60 never touch begun\nprintf '%s\\n' \"${verdicts[@]}\" $failed\n"
    run = subprocess.run(
        ["bash", "-c", f"{begun}deadline=60\n{stage}\n{stages}{shown}"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    *verdicts, failed = run.stdout.splitlines()[-5:]
    assert [re.sub(r" +\d+ s +", " ", verdict) for verdict in verdicts] == [
        "passed passes", "FAILED (124) hangs", "FAILED (124) late", "FAILED (124) never",
    ]  # fmt: skip
    assert failed == "1"
    assert "a summary" in (tmp_path / "out/stage-1.log").read_text()
    assert "not begun" in (tmp_path / "out/stage-3.log").read_text()
    assert not (tmp_path / "begun").exists()


def test_cpp_includes_earlier_rooms_alone_and_stands_in_the_namespace_of_its_room(root):
    rooms = {folder.name for folder in (root / "native").iterdir() if folder.is_dir()}
    assert rooms == {*NATIVE_ROOMS, "licenses"}
    wrong = []
    for path in sorted((root / "native").rglob("*.[ch]*")):
        room = path.relative_to(root / "native").parts[0]
        if room == "kinds" or path.suffix not in {".h", ".cpp"}:  # its tables are in the rooms that use them
            continue
        code = path.read_text()
        later = NATIVE_ROOMS[NATIVE_ROOMS.index(room) + 1 :]
        wrong += [f"{path.name} includes {name}" for name in re.findall(r'#include "(\w+)/', code) if name in later]
        spaces = set(re.findall(r"^namespace collector(?:::(\w+))?(?:::\w+)* \{", code, re.MULTILINE))
        wrong += [f"{path.name} is in {space}" for space in spaces - {room}]
    assert wrong == []


def test_a_test_that_needs_a_framework_runs_beside_it(root):
    """Elsewhere it skips: what nobody runs goes rotten."""
    needs = re.compile(r"(?:importorskip|find_spec)\(\"(?:torch|tensorflow|keras|triton)\b")
    files = [path for path in (root / "tests").rglob("test_*.py") if path.parent.name != "gpu"]
    found = {path.relative_to(root).as_posix() for path in files if needs.search(path.read_text())}
    listing = ["make", "-s", "--eval", "listed: ; @echo $(FRAMEWORK_TESTS)", "listed"]
    listed = subprocess.run(listing, cwd=root, capture_output=True, text=True, check=True).stdout.split()
    assert found <= set(listed)
    assert [path for path in listed if not (root / path).exists()] == []
