"""Files that are either complete or absent."""

from __future__ import annotations

import errno
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import collector
from collector.files.atomic_files import atomic_path, atomic_write, check_writable, database_error
from tests.support.file_permissions import permissions_hold


def test_a_file_appears_only_when_it_is_whole(tmp_path):
    path = tmp_path / "t.json"
    with atomic_write(path) as file:
        file.write(b"half")
        assert not path.exists()
        file.write(b" and half")
    assert path.read_bytes() == b"half and half"
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]


def test_an_exception_leaves_what_was_there_and_nothing_else(tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(b"before")

    def write_half() -> None:
        with atomic_write(path) as file:
            file.write(b"half")
            raise KeyError

    with pytest.raises(KeyError):
        write_half()
    assert path.read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]


def test_a_name_as_long_as_the_file_system_allows_can_be_written(tmp_path):
    path = tmp_path / ("x" * 250 + ".pb")
    with atomic_write(path) as file:
        file.write(b"1")
    assert path.read_bytes() == b"1"


@pytest.mark.parametrize("name", ["absent/t.json", "file/t.json", "folder", "x" * 300])
def test_what_cannot_be_written_is_named_with_the_reason(tmp_path, name):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with (
        pytest.raises(collector.OutputError, match=r"cannot write .*: ") as raised,
        atomic_write(tmp_path / name) as file,
    ):
        file.write(b"1")
    assert name in raised.value.cause


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("database or disk is full", "No space left on device. Free space, or write to another place"),
        (
            'IO Error: Could not write file "/a/.trace.duckdb.12.part.wal": No space left on device',
            "No space left on device. Free space, or write to another place",
        ),
        ("unable to open: Read-only file system", "Read-only file system. Write to another place"),
        ("the table has no column of this name", "the table has no column of this name"),
    ],
)
def test_the_text_of_a_database_names_the_remedy(text, told):
    assert str(database_error("cannot write x", text)) == f"cannot write x: {told}"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("absent/t.json", "does not exist"),
        ("file/t.json", r"/file is not a folder\. Write to another place"),
        ("folder", "it is a folder"),
    ],
)
def test_a_path_is_checked_before_there_is_anything_to_write(tmp_path, name, reason):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(collector.OutputError, match=reason):
        check_writable(tmp_path / name)
    check_writable(tmp_path / "file")
    check_writable(tmp_path / "new")


def test_a_file_that_others_may_not_read_stays_so(tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(b"before")
    path.chmod(0o600)
    with atomic_write(path) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600  # from the first byte on
        file.write(b"after")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"after", 0o600)


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_and_what_it_points_to_is_written(tmp_path, exists):
    (tmp_path / "elsewhere").mkdir()
    real, link = tmp_path / "elsewhere" / "real.json", tmp_path / "t.json"
    if exists:
        real.write_bytes(b"before")
    link.symlink_to(real)
    check_writable(link)
    with atomic_write(link) as file:
        file.write(b"after")
    assert link.is_symlink()
    assert real.read_bytes() == b"after"
    assert [path.name for path in real.parent.iterdir()] == ["real.json"]


def test_a_link_to_nowhere_is_reported(tmp_path):
    (tmp_path / "lost.json").symlink_to(tmp_path / "absent" / "t.json")
    (tmp_path / "round.json").symlink_to(tmp_path / "round.json")
    with pytest.raises(collector.OutputError, match="absent does not exist"):
        check_writable(tmp_path / "lost.json")
    with pytest.raises(collector.OutputError, match=r"cannot write .*round\.json"):
        check_writable(tmp_path / "round.json")


@pytest.mark.parametrize("written", [atomic_write, atomic_path])
def test_a_folder_that_is_missing_is_named_where_nothing_was_checked_before(written, tmp_path):
    """As `Step.save` writes; `collector.trace` and the commands check first."""
    (tmp_path / "file").touch()

    def write(path):
        with written(path) as opened:
            if written is atomic_path:
                opened.write_text("")

    for folder, why in (("no where", "does not exist. Make it first: mkdir -p '"), ("file", "is not a folder")):
        with pytest.raises(collector.OutputError, match=re.escape(f"{folder} {why}")):
            write(tmp_path / folder / "t.json")


def test_a_pipe_is_written_into(tmp_path):
    path = tmp_path / "t.json"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    check_writable(path)
    with atomic_write(path) as file:
        file.write(b"through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert path.is_fifo()
    assert [each.name for each in tmp_path.iterdir()] == ["t.json"]


def test_a_pipe_that_nobody_reads_is_reported_at_once(tmp_path):
    path = tmp_path / "t.json"
    os.mkfifo(path)
    with pytest.raises(collector.OutputError, match="this pipe has no reader"), atomic_write(path) as file:
        file.write(b"1")


@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd", "/proc/thread-self/fd"])
@pytest.mark.parametrize("is_link", [False, True])
def test_an_open_file_of_the_process_is_written_where_it_stands(tmp_path, folder, is_link):
    """As /dev/stdout is, where a shell has redirected the output to a file: that keeps what it holds already."""
    log = tmp_path / "log.txt"
    with log.open("wb", buffering=0) as file:
        file.write(b"before\n")
        path = Path(f"{folder}/{file.fileno()}")
        if is_link:
            (tmp_path / "t.csv").symlink_to(path)
            path = tmp_path / "t.csv"
        check_writable(path)
        with atomic_write(path) as stream:
            stream.write(b"table\n")
        file.write(b"after\n")
    assert log.read_text() == "before\ntable\nafter\n"


def test_what_was_printed_before_a_file_is_written_to_the_output_stands_before_it(tmp_path):
    program = """
from collector.files.atomic_files import atomic_write

print("before")
with atomic_write("/dev/stdout") as file:
    file.write(b"table\\n")
print("after")
"""
    with (tmp_path / "log.txt").open("wb") as log:
        subprocess.run([sys.executable, "-c", program], stdout=log, check=True)
    assert (tmp_path / "log.txt").read_text() == "before\ntable\nafter\n"


def test_an_open_file_that_is_only_read_is_reported(tmp_path):
    (tmp_path / "log.txt").write_bytes(b"before")

    def write(number: int) -> None:
        with atomic_write(f"/dev/fd/{number}") as stream:
            stream.write(b"table")

    with (tmp_path / "log.txt").open("rb") as file, pytest.raises(collector.OutputError, match="Bad file descriptor"):
        write(file.fileno())
    assert (tmp_path / "log.txt").read_bytes() == b"before"


def test_a_number_that_is_no_open_file_is_reported():
    with pytest.raises(collector.OutputError, match="cannot write /dev/fd/987654"), atomic_write("/dev/fd/987654"):
        pass


def test_the_exception_of_a_signal_handler_is_none_of_the_system(tmp_path):
    """A `TimeoutError` is an OSError, as those of a full disk are."""

    def end_waiting(*_: object) -> None:
        raise TimeoutError

    def write(path: Path) -> None:
        with atomic_write(path):
            os.kill(os.getpid(), signal.SIGALRM)
            for _ in range(100_000):
                pass

    before = signal.signal(signal.SIGALRM, end_waiting)
    try:
        with pytest.raises(TimeoutError):
            write(tmp_path / "t.json")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert list(tmp_path.iterdir()) == []


def test_a_tilde_is_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    check_writable("~/t.json")
    with atomic_write("~/t.json") as file:
        file.write(b"1")
    assert (tmp_path / "t.json").read_bytes() == b"1"


def test_a_name_of_many_bytes_that_the_file_system_allows_can_be_written(tmp_path):
    path = tmp_path / ("\N{CJK UNIFIED IDEOGRAPH-4E00}" * 84 + ".pb")  # 255 bytes
    check_writable(path)
    with atomic_write(path) as file:
        file.write(b"1")
    assert path.read_bytes() == b"1"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("x" * 256, "its name has 256 bytes, and at most 255 are possible"),
        ("\N{CJK UNIFIED IDEOGRAPH-4E00}" * 86, "its name has 258 bytes, and at most 255 are possible"),
        ("a\0b", "no file can have this name"),
        ("\ud800", "no file can have this name"),
    ],
)
def test_a_name_that_no_file_can_have_is_reported(tmp_path, name, reason):
    with pytest.raises(collector.OutputError, match=reason):
        check_writable(tmp_path / name)


def test_a_folder_without_permission_is_reported(tmp_path):
    tmp_path.chmod(0o500)
    with permissions_hold(), pytest.raises(collector.OutputError, match=r"not writable.* Write to another place$"):
        check_writable(tmp_path / "t.json")


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "Free space, or write to another place"),
        (errno.EDQUOT, "Free space, or write to another place"),
        (errno.EROFS, "Write to another place"),
        (errno.EACCES, "Write to another place"),
        (errno.EIO, ""),
    ],
    ids=errno.errorcode.get,
)
def test_the_reason_of_the_system_has_a_remedy(tmp_path, number, remedy):
    path = tmp_path / "t.json"
    with pytest.raises(collector.OutputError) as raised, atomic_write(path):
        raise OSError(number, os.strerror(number))
    assert (raised.value.cause, raised.value.remedy) == (f"cannot write {path}: {os.strerror(number)}", remedy)
    assert not path.exists()
