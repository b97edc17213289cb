"""Names of several files, which differ where the files do."""

from __future__ import annotations

from pathlib import Path

import pytest

from collector.files.distinct_names import distinct_names


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["/a/one.pb", "/b/two.pb"], ["one.pb", "two.pb"]),
        (["/a/step.pb", "/b/step.pb", "/b/two.pb"], ["a/step.pb", "b/step.pb", "two.pb"]),
        (["/1/x/s.pb", "/2/x/s.pb", "/2/y/s.pb"], ["1/x/s.pb", "2/x/s.pb", "y/s.pb"]),
        (["/s.pb", "/a/s.pb", "/a/a/s.pb"], ["s.pb", "a/s.pb", "a/a/s.pb"]),
        (["/a/s.pb", "/a/s.pb", "/a/../a/s.pb"], ["s.pb", "s.pb", "s.pb"]),
    ],
)
def test_a_name_has_the_folders_that_tell_it_from_others(paths, names):
    assert distinct_names([Path(path).name for path in paths], [Path(path) for path in paths]) == names


def test_folders_are_found_where_the_working_directory_ends(tmp_path, monkeypatch):
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    assert distinct_names(["s.pb", "s.pb"], [Path("s.pb"), Path("../b/s.pb")]) == ["a/s.pb", "b/s.pb"]
