"""Processes of the collector's own run Python's modules, and none of the working directory."""

from __future__ import annotations

import os
import subprocess

import pytest

import collector
from collector.formats.conversion import Conversion
from collector.runtime.child_interpreters import python_command, python_path

SHADOWING = "raise SystemExit('a module of the working directory was run')"


@pytest.fixture
def working_directory(tmp_path, monkeypatch):
    for name in ("tokenize", "dataclasses", "numpy"):
        (tmp_path / f"{name}.py").write_text(SHADOWING)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("options", [{}, {"PYTHONSAFEPATH": "1"}], ids=["", "safe path"])
def test_modules_of_the_working_directory_are_not_imported(working_directory, options):
    command = python_command("import tokenize; print(sys.argv[1:], tokenize.__file__)", "an argument")
    done = subprocess.run(command, env=os.environ | options, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("['an argument'] ")
    assert str(working_directory) not in done.stdout


def test_what_this_process_can_import_is_in_the_path(monkeypatch):
    monkeypatch.setattr("sys.path", ["", "/one", "/two"])
    assert python_path() == f"/one{os.pathsep}/two"


@pytest.mark.medium
def test_a_conversion_runs_nothing_of_the_working_directory(example, working_directory):
    example.save(working_directory / "step.gpurec")
    Conversion(working_directory / "step.gpurec", working_directory / "step.json").wait()
    assert len(collector.load(working_directory / "step.json").kernels) == len(example.kernels)
