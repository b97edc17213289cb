"""The registry of formats, the source of every list, help text and error about formats."""

from __future__ import annotations

import pytest

from collector.cli import main
from collector.errors import InvalidFileError, UnknownFormatError
from collector.formats import registry
from collector.formats.loading import load
from collector.runtime.extension import convert_extension
from collector.timeline.drawn_files import DRAWN_FILES


def test_every_format_is_read_or_written_and_says_what_it_is():
    for each in registry.formats():
        assert each.read or each.write, each.name
        assert each.name
        assert each.family
        assert all(suffix == suffix.lower() and suffix.startswith(".") for suffix in each.suffixes), each.name


def test_a_suffix_is_written_by_one_format():
    written = [suffix for each in registry.formats() if each.write for suffix in each.suffixes]
    assert sorted(written) == sorted(set(written))


def test_one_readable_format_has_no_signature():
    assert sum(each.begins is None for each in registry.readable()) == 1


def test_drawn_files_are_those_that_the_extension_has_a_writer_for():
    assert [each.writer for each in DRAWN_FILES] == convert_extension.trace_writers()


@pytest.mark.parametrize("command", ["timeline", "merge"])
def test_help_lists_what_is_read_and_written(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    suffixes = registry.written_suffixes() if command == "timeline" else registry.merged_suffixes()
    for suffix in suffixes:
        assert suffix.removesuffix(".gz") in printed
    for each in registry.readable():
        assert each.family in printed
        assert each.origin in printed


def test_the_page_about_files_lists_every_format_that_is_read_or_written(root):
    page = (root / "docs" / "reading.md").read_text(encoding="utf-8")
    table = page.partition("| format |")[2].partition("\n\n")[0]
    listed = {}
    for line in table.splitlines()[2:]:
        name, suffixes, is_read, is_written = (cell.strip() for cell in line.strip("|").split("|"))
        listed[name] = set(suffixes.replace("`", "").replace(",", "").split()), is_read, is_written
    expected = {}
    for each in registry.formats():
        suffixes, is_read, is_written = expected.get(each.family, (set(), "", ""))
        is_read, is_written = is_read or ("yes" if each.read else ""), is_written or ("yes" if each.write else "")
        expected[each.family] = suffixes | set(each.suffixes), is_read, is_written
    assert listed == expected


def test_the_profilers_help_lists_what_it_reads(capsys):
    with pytest.raises(SystemExit):
        main(["prof", "--help"])
    printed = " ".join(capsys.readouterr().out.split())
    assert all(each.family in printed for each in registry.readable())


def test_errors_list_what_is_read_and_written(tmp_path):
    (tmp_path / "a.pb").write_bytes(b"<html></html>")
    with pytest.raises(InvalidFileError) as caught:
        load(tmp_path / "a.pb")
    assert all(suffix in str(caught.value) for suffix in registry.readable_suffixes())
    with pytest.raises(UnknownFormatError) as unknown:
        registry.output_of(tmp_path / "a.txt")
    assert all(suffix in str(unknown.value) for suffix in registry.written_suffixes())
