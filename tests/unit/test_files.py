"""Files that are whole or not there."""

from __future__ import annotations

import os

import pytest

import collector
from collector.files import atomic_write, check_writable


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
    ("name", "reason"),
    [("absent/t.json", "does not exist"), ("file/t.json", "is not a folder"), ("folder", "it is a folder")],
)
def test_a_path_is_checked_before_there_is_anything_to_write(tmp_path, name, reason):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(collector.OutputError, match=reason):
        check_writable(tmp_path / name)
    check_writable(tmp_path / "file")
    check_writable(tmp_path / "new")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_told_of(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(collector.OutputError, match="not writable"):
        check_writable(tmp_path / "t.json")
