"""The programs of tests/gpu in separate processes, which must not hang a run."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from timed_programs import EndedAtLimitError, ended_after, run_timed

HANGING = "import time\nprint('begun', flush=True)\ndef wait_for_nothing():\n    time.sleep(60)\nwait_for_nothing()\n"


@pytest.mark.medium
def test_a_program_that_hangs_is_ended_and_shows_where_it_was():
    for seconds in (1, 5, 25):  # on a busy machine it has not begun by then
        with pytest.raises(EndedAtLimitError) as caught:
            run_timed([sys.executable, "-c", HANGING], seconds=seconds)
        message = str(caught.value)
        if "begun" in message:
            break
    assert f"did not end within {seconds} s" in message
    assert "in wait_for_nothing" in message


@pytest.mark.medium
def test_the_processes_of_a_program_that_hangs_are_ended_too():
    for seconds in (0.5, 5, 50):  # on a busy machine the program has not started the other one by then
        with pytest.raises(EndedAtLimitError) as caught:
            run_timed(["sh", "-c", "sleep 600 & echo $!; wait"], seconds=seconds)
        started = [int(line) for line in str(caught.value).splitlines() if line.isdecimal()]
        if started:
            break
    until = time.monotonic() + 20
    while _runs(started[0]):
        assert time.monotonic() < until
        time.sleep(0.02)


def _runs(process_id):
    """Whether the process exists, and is not merely waiting for its parent."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.medium
def test_a_program_that_ends_has_its_output_and_status():
    done = run_timed([sys.executable, "-c", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"])
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")


@pytest.mark.medium
def test_a_read_from_a_program_that_hangs_ends_with_it():
    child = subprocess.Popen(["sleep", "60"], stdout=subprocess.PIPE, text=True)
    with child, pytest.raises(EndedAtLimitError), ended_after(child, 0.1):
        assert child.stdout.readline() == ""
