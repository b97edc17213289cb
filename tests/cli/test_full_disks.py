"""Commands that run out of room for the file that they write, or for a temporary one."""

from __future__ import annotations

import gzip
import sqlite3
import subprocess
import sys

import pytest

from collector.cli import main

PROGRAM = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
from collector.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def step(build, tmp_path):
    for number in range(1, 400):
        build.launch(number, 1000 * number).kernel(f"k{number}", 1000 * number + 500, 100, correlation_id=number)
    build.recording().save(tmp_path / "step.gpurec")
    return tmp_path / "step.gpurec"


@pytest.fixture
def export(tmp_path):
    """A packed export of Nsight Systems that is larger when it is unpacked."""
    database = sqlite3.connect(tmp_path / "report.sqlite")
    with database:
        database.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        database.executemany("INSERT INTO StringIds VALUES (?, ?)", ((number, "k" * 99) for number in range(200)))
        database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER)")
        database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0)")
    database.close()
    path = tmp_path / "report.sqlite.gz"
    path.write_bytes(gzip.compress((tmp_path / "report.sqlite").read_bytes()))
    return path


def told(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done
    return done.stderr.strip()


@pytest.mark.medium
@pytest.mark.parametrize(
    ("command", "suffix"),
    [("timeline", suffix) for suffix in ("json", "json.gz", "pftrace", "pb", "pbtxt", "gpurec", "html", "xplane.pb")]
    + [("merge", suffix) for suffix in ("json.gz", "xplane.pb")],
)
def test_a_file_that_has_no_room(step, tmp_path, command, suffix):
    before = sorted(tmp_path.iterdir())
    error = told(tmp_path, command, step, "-o", f"out.{suffix}")
    assert error == f"collector: cannot write out.{suffix}: File too large"
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.medium
def test_a_dataset_that_has_no_room(step, tmp_path):
    pytest.importorskip("pyarrow")
    runs = tmp_path / "runs"
    assert main(["export", "--to", "parquet", str(runs), str(step)]) == 0
    before = sorted(runs.rglob("*.*"))
    assert told(tmp_path, "export", "--to", "parquet", runs, step) == (
        f"collector: cannot write the dataset {runs}: File too large"
    )
    assert sorted(runs.rglob("*.*")) == before


@pytest.mark.medium
def test_an_export_that_cannot_be_unpacked(export, tmp_path):
    error = told(tmp_path, "summary", export)
    assert error == f"collector: cannot unpack {export} into the folder of temporary files: File too large"


@pytest.mark.parametrize("words", [["run", "--", "true"], ["ui"]])
def test_no_folder_for_temporary_files_is_writable(words, tmp_path, monkeypatch, capsys):
    """As in a container whose root is read-only."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("tempfile._candidate_tempdir_list", lambda: [str(tmp_path / "none")])
    assert main(words) == 2
    remedy = "Set TMPDIR to a folder with room that this user may write to"
    assert capsys.readouterr().err == f"collector: no folder for temporary files can be written. {remedy}\n"
