"""Markdown and annotations for the page of a job on GitHub Actions."""

from __future__ import annotations

import pytest

from collector.text.job_summary import add_to_job_summary, job_annotations


@pytest.fixture
def page(tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    return tmp_path / "summary.md"


def test_parts_follow_what_is_there(page):
    page.write_text("# of another step\n\n")
    add_to_job_summary("one", "| a |\n")
    add_to_job_summary("two", "| b |")
    assert page.read_text() == "# of another step\n\n## one\n\n| a |\n\n## two\n\n| b |\n\n"


def test_a_part_without_room_leaves_a_line(page):
    page.write_bytes(b"x" * 1_000_000)
    add_to_job_summary("large", "y" * 100_000)
    assert page.read_bytes()[1_000_000:] == b"## large\n\nThese tables are too large for this page.\n\n"
    page.write_bytes(b"x" * (1 << 20))
    add_to_job_summary("none", "y")
    assert page.stat().st_size == 1 << 20


def test_elsewhere_nothing_is_written(monkeypatch, capsys):
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    add_to_job_summary("one", "text")
    assert job_annotations("error", "title", ["message"]) == []
    assert capsys.readouterr() == ("", "")


def test_a_page_that_cannot_be_written_is_one_line(page, capsys):
    page.mkdir()
    add_to_job_summary("one", "text")
    assert capsys.readouterr().err == (
        f"collector: the summary of the job lacks the part 'one': {page}, which GITHUB_STEP_SUMMARY names, cannot be "
        "written: Is a directory\n"
    )


def test_a_message_ends_no_command(monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    [line] = job_annotations("error", "a: b, c", ["50 %\n::error::no"])
    assert line == "::error title=a%3A b%2C c::50 %25%0A::error::no"
