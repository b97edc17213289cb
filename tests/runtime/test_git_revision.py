"""The revision of a repository, read from git's files as git leaves them."""

from __future__ import annotations

import pytest

from collector.runtime.git_revision import git_revision

REVISION = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def git(tmp_path):
    """The folder of git in a repository on branch main."""
    folder = tmp_path / ".git"
    (folder / "refs" / "heads").mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


def test_a_branch(git, tmp_path):
    (git / "refs" / "heads" / "main").write_text(f"{REVISION}\n")
    (tmp_path / "src").mkdir()
    assert git_revision(tmp_path) == git_revision(tmp_path / "src") == REVISION


def test_a_detached_head(git, tmp_path):
    (git / "HEAD").write_text(f"{REVISION}\n")
    assert git_revision(tmp_path) == REVISION


def test_packed_references(git, tmp_path):
    (git / "packed-refs").write_text(
        f"# pack-refs with: peeled\n{'f' * 40} refs/heads/old\n{REVISION} refs/heads/main\n"
    )
    assert git_revision(tmp_path) == REVISION


def test_a_worktree(git, tmp_path):
    (git / "refs" / "heads" / "other").write_text(f"{REVISION}\n")
    own = git / "worktrees" / "other"
    own.mkdir(parents=True)
    (own / "HEAD").write_text("ref: refs/heads/other\n")
    (own / "commondir").write_text("../..\n")
    tree = tmp_path / "other"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {own}\n")
    assert git_revision(tree) == REVISION


@pytest.mark.parametrize("head", ["", "ref: refs/heads/none", "ref: ../../../etc/hostname", "no revision", "\xff"])
def test_what_says_nothing(git, tmp_path, head):
    (git / "HEAD").write_text(head)
    assert git_revision(tmp_path) == ""


def test_a_branch_without_commits(git, tmp_path):
    assert git_revision(tmp_path) == ""
