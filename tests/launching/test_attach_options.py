"""The options of `collector attach`, without a process."""

from __future__ import annotations

import os

import pytest

from collector.cli import main
from collector.cli.attach import _kept
from collector.errors import OutputError


@pytest.mark.parametrize("words", [["stop"], ["dump"], ["status"], ["record", "5s"]], ids=" ".join)
def test_a_size_is_for_start_alone(capsys, words):
    assert main(["attach", str(os.getpid()), *words, "--max-size", "1MB"]) == 2
    assert f"`{words[0]}` has no --max-size. Give it to start" in capsys.readouterr().err


@pytest.mark.parametrize("number", ["-1", "0", "2147483648", str(2**70), "9" * 5000, "x"])
def test_a_process_has_a_number_that_a_process_can_have(capsys, number):
    with pytest.raises(SystemExit) as end:
        main(["attach", number, "status"])
    assert end.value.code == 2
    assert "is not a number of a process: give a number from 1 to 2147483647" in capsys.readouterr().err


def test_options_that_a_project_states_are_for_the_actions_that_use_them(tmp_path, monkeypatch, capsys):
    (tmp_path / "pyproject.toml").write_text('[tool.collector.attach]\nmax-size = "1MB"\noutput = "out.json"\n')
    monkeypatch.chdir(tmp_path)
    for words in (["stop"], ["status"], ["start"]):
        assert main(["attach", str(os.getpid()), *words]) == 2
        assert "does not listen" in capsys.readouterr().err
    assert main(["attach", str(os.getpid()), "status", "-o", "out.json"]) == 2
    assert "`status` writes no file" in capsys.readouterr().err


def test_a_journal_gets_a_name_that_is_free(tmp_path):
    def journal():
        made = tmp_path / "new.journal"
        made.mkdir()
        (made / "000001.journal").touch()
        return made

    place = tmp_path / "host-1-2.journal"
    assert _kept(journal(), place) == place
    (tmp_path / "host-1-2.2.journal").touch()
    assert _kept(journal(), place) == tmp_path / "host-1-2.3.journal"
    assert len(list(tmp_path.iterdir())) == 3
    with pytest.raises(OutputError, match="No such file"):
        _kept(journal(), tmp_path / "missing" / "host.journal")
