"""The programs of tests/gpu in separate processes, which must not hang a run."""

import subprocess
import sys
import time

import pytest
from timed_programs import EndedAtLimitError, ended_after, run_timed

HANGING = "import time\nprint('begun', flush=True)\ndef wait_for_nothing():\n    time.sleep(60)\nwait_for_nothing()\n"


@pytest.mark.medium
def test_a_program_that_hangs_is_ended_and_shows_where_it_was():
    begin = time.monotonic()
    with pytest.raises(EndedAtLimitError) as caught:
        run_timed([sys.executable, "-c", HANGING], seconds=1)
    message = str(caught.value)
    assert "did not end within 1 s" in message
    assert "begun" in message
    assert "in wait_for_nothing" in message
    assert time.monotonic() - begin < 30


@pytest.mark.medium
def test_the_processes_of_a_program_that_hangs_are_ended_too():
    text = (
        "import subprocess, sys\nchild = subprocess.Popen(['sleep', '60'])\nprint(child.pid, flush=True)\nchild.wait()"
    )
    with pytest.raises(EndedAtLimitError) as caught:
        run_timed([sys.executable, "-c", text], seconds=1)
    child = next(line for line in str(caught.value).splitlines() if line.isdecimal())
    until = time.monotonic() + 20
    while subprocess.run(["ps", "-o", "stat=", "-p", child], capture_output=True, check=False).stdout.strip()[
        :1
    ] not in (
        b"",
        b"Z",
    ):
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.medium
def test_a_program_that_ends_has_its_output_and_status():
    done = run_timed([sys.executable, "-c", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"])
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")


@pytest.mark.medium
def test_a_read_from_a_program_that_hangs_ends_with_it():
    child = subprocess.Popen(["sleep", "60"], stdout=subprocess.PIPE, text=True)
    with child, pytest.raises(EndedAtLimitError), ended_after(child, 0.1):
        assert child.stdout.readline() == ""
