"""The files in a folder and in the folders below it."""

from __future__ import annotations

from collector.files.nested_files import DEEPEST, found_below
from tests.support.file_permissions import permissions_hold


def names(folder, is_one=lambda _: False):
    return [found.path.relative_to(folder).as_posix() for found in found_below(folder, is_one)]


def test_files_are_found_in_the_order_of_their_names(tmp_path):
    for name in ("b/2", "b/1", "a", "c", ".hidden/file", ".file", "b/.file"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert names(tmp_path) == ["a", "b/1", "b/2", "c"]
    assert names(tmp_path, is_one=lambda path: path.name == "b") == ["a", "b", "c"]


def test_links_are_found_and_not_entered(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "up").symlink_to(tmp_path)
    (tmp_path / "nowhere").symlink_to("nothing")
    assert names(tmp_path) == ["folder/up", "nowhere"]


def test_folders_are_entered_up_to_a_depth(tmp_path):
    deepest = tmp_path
    for _ in range(DEEPEST):
        deepest /= "d"
    (deepest / "d").mkdir(parents=True)
    for folder in (deepest, deepest / "d"):
        (folder / "file").touch()
    assert names(tmp_path) == ["d/" * DEEPEST + "file"]


def test_a_folder_that_cannot_be_read_is_found_with_the_reason(tmp_path):
    (tmp_path / "closed").mkdir(mode=0)
    (tmp_path / "file").touch()
    with permissions_hold():
        found = list(found_below(tmp_path, lambda _: False))
    assert found == [(tmp_path / "closed", "Permission denied"), (tmp_path / "file", "")]
