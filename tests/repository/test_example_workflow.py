"""The commands of the example workflow have the options that they are given."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys

import pytest

from collector.cli import command_parser


def commands(root, program: str) -> list[list[str]]:
    text = (root / "examples" / "ci" / "github-actions.yml").read_text()
    lines = re.findall(rf"- run: ({program} .*)", text)
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
