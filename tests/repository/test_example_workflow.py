"""The example workflow: its commands have the options that they are given, and its steps have what they need."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from typing import Any

import pytest

from collector.cli import command_parser


def commands(root, program: str) -> list[list[str]]:
    text = (root / "examples" / "ci" / "github-actions.yml").read_text()
    lines = re.findall(rf"\brun: ({program} .*)", text)
    return [shlex.split(line, comments=True) for line in lines]


def test_commands_of_the_collector_are_valid(root):
    found = commands(root, "collector")
    assert {words[1] for words in found} == {"info", "bench"}
    for words in found:
        assert command_parser(words[1:]).parse_args(words[1:]).subcommand == words[1]


@pytest.mark.slow
def test_options_of_pytest_are_valid(root):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--help"], capture_output=True, text=True, check=True, cwd=root
    )
    found = commands(root, "pytest")
    assert found
    for words in found:
        for option in words[1:]:
            if option.startswith("--"):
                assert option.partition("=")[0] + "=" in done.stdout, option


@pytest.fixture
def workflow(root) -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    found: dict[str, Any] = yaml.safe_load((root / "examples" / "ci" / "github-actions.yml").read_text())
    return found


def uses(steps: list[dict[str, Any]], action: str) -> tuple[int, dict[str, Any]]:
    """The place of the one step that uses an action, and the step."""
    [(place, step)] = [(place, each) for place, each in enumerate(steps) if each.get("uses", "").startswith(action)]
    return place, step


def runs(steps: list[dict[str, Any]], program: str) -> list[tuple[int, list[str], str]]:
    """The place, the words and the condition of each step that runs a program."""
    return [
        (place, shlex.split(each["run"], comments=True), str(each.get("if", "")))
        for place, each in enumerate(steps)
        if each.get("run", "").startswith(program)
    ]


def test_each_baseline_is_restored_before_and_stored_on_main(workflow):
    for job in workflow["jobs"].values():
        benches = runs(job["steps"], "collector bench")
        for place, words, condition in benches:
            if "--baseline" not in words:
                continue
            file = words[words.index("--baseline") + 1]
            restored, restoring = uses(job["steps"], "actions/cache/restore")
            stored, storing = uses(job["steps"], "actions/cache/save")
            assert restored < place < stored
            assert restoring["with"]["path"] == storing["with"]["path"] == file
            assert storing["with"]["key"].startswith(restoring["with"]["restore-keys"])
            assert storing["if"] == "github.ref == 'refs/heads/main'"
            [(copied, copy, of_main)] = runs(job["steps"], "cp")
            assert (copy[1:], of_main) == ([words[words.index("--json") + 1], file], storing["if"])
            assert place < copied < stored
            # A run without a stored report measures as well, and writes the report that is stored.
            assert condition == f"hashFiles('{file}') != ''"
            first = [given for _, given, when in benches if when == f"hashFiles('{file}') == ''"]
            assert len(first) == 1
            assert first[0][first[0].index("--json") + 1] == copy[1]
    assert any("--baseline" in words for job in workflow["jobs"].values() for _, words, _ in runs(job["steps"], "coll"))


def test_code_of_forks_does_not_run_on_a_runner_of_ones_own(workflow):
    assert "pull_request_target" not in workflow[True]  # YAML 1.1 reads the key `on` as true
    own = [job for job in workflow["jobs"].values() if "self-hosted" in job["runs-on"]]
    assert own
    for job in own:
        assert "github.event.pull_request.head.repo.full_name == github.repository" in job["if"]
