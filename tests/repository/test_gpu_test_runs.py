"""Runs of tests/gpu module by module: a crash, a hang or a limit loses nothing but its own test."""

import os
import sys
import time

import pytest

CRASHES = """
import ctypes, os
def test_before(record_property):
    record_property("shown", "the driver is in a good mood")
def test_crashes():
    ctypes.string_at(0)
def test_fails_after_it():
    assert "card" == "home"
def test_skips():
    import pytest
    pytest.skip("no ncu")
"""
HANGS = """
import time
def test_before():
    pass
def test_hangs():
    wait_in_vain()
def wait_in_vain():
    time.sleep(60)
def test_after():
    pass
"""
BROKEN = "import no_such_module\n"
PASSES = "def test_passes():\n    pass\n"


@pytest.fixture
def gpu_tests(load_script, root, monkeypatch, tmp_path):
    """`gpu_tests`, with modules of this test in the place of those of tests/gpu."""
    load_script("gpu_report")
    module = sys.modules["gpu_tests"]
    monkeypatch.setattr(module, "GPU_TESTS", tmp_path)
    for name, text in (("crashes", CRASHES), ("hangs", HANGS), ("broken", BROKEN), ("passes", PASSES)):
        (tmp_path / f"test_gpu_{name}.py").write_text(text)
    return module


@pytest.fixture
def runner(gpu_tests, root, tmp_path):
    def make(seconds=100, **options):
        variables = {"PYTHONPATH": str(root / "scripts" / "card"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        return gpu_tests.Runner(sys.executable, os.environ | variables, tmp_path, time.monotonic() + seconds, **options)

    return make


def by_name(tests):
    return [test.rpartition("::")[2] for test in tests]


@pytest.mark.slow
def test_after_a_crash_the_other_tests_run_and_every_reason_is_reported(gpu_tests, runner, tmp_path):
    outcomes = runner().run_module(gpu_tests.Module("crashes"))
    assert outcomes.ends == ["died of SIGSEGV in test_crashes"]
    assert by_name(outcomes.failed_tests) == ["test_crashes", "test_fails_after_it"]
    assert outcomes.counts() == "1 passed, 2 failed, 1 skipped; died of SIGSEGV in test_crashes"
    assert not outcomes.has_passed
    assert "failed (call):" in outcomes.log
    assert "assert 'card' == 'home'" in outcomes.log
    text = gpu_tests.section([outcomes])
    assert "| crashes | 1 passed, 2 failed, 1 skipped; died of SIGSEGV in test_crashes |" in text
    assert "Fatal Python error: Segmentation fault" in text
    assert "assert 'card' == 'home'" in text
    assert "- test_before: the driver is in a good mood" in text
    assert "- 1: Skipped: no ncu" in text
    assert not list(tmp_path.glob("outcomes-*"))


@pytest.mark.slow
def test_a_module_that_hangs_shows_where_and_its_other_tests_run(gpu_tests, runner):
    for seconds in (3, 12, 48):  # on a busy machine the process has not begun its test by then
        outcomes = runner().run_module(gpu_tests.Module("hangs", seconds=seconds))
        if outcomes.lines:
            break
    assert outcomes.ends == [f"ended after {seconds} s in test_hangs"]
    assert by_name(outcomes.failed_tests) == ["test_hangs"]
    assert by_name(line["test"] for line in outcomes.of("passed")) == ["test_before", "test_after"]
    assert "in wait_in_vain" in outcomes.log


@pytest.mark.slow
def test_the_limit_of_a_test_ends_it_alone(gpu_tests, runner):
    outcomes = runner().run_module(gpu_tests.Module("hangs", test_seconds=1))
    assert outcomes.ends == []
    (failed,) = outcomes.of("failed")
    assert "Timeout" in failed["text"]
    assert len(outcomes.of("passed")) == 2


@pytest.mark.slow
def test_modules_run_at_once_and_one_that_cannot_be_imported_is_a_failure(gpu_tests, runner):
    ended = []
    modules = [gpu_tests.Module(name) for name in ("broken", "passes")]
    repeated = {"broken": ("with another libcupti", {"COLLECTOR_LIBCUPTI": "/elsewhere"})}
    found = runner(repeated=lambda outcomes: None if outcomes.has_passed else repeated["broken"]).run(
        modules, ended.append
    )
    assert [outcomes.has_passed for outcomes in found] == [False, True]
    assert {outcomes.title for outcomes in ended} == {"broken", "passes", "broken, with another libcupti"}
    assert "No module named 'no_such_module'" in gpu_tests.section(found)
    assert found[0].ends == ["exit status 2"]


def test_without_time_nothing_runs_and_that_is_said(gpu_tests, runner):
    outcomes = runner(seconds=1).run_module(gpu_tests.Module("passes"))
    assert outcomes.counts() == "nothing ran; no time was left"
    assert not outcomes.has_passed


def test_modules_that_measure_run_alone(gpu_tests):
    one, other, alone = (gpu_tests.Module(name, is_alone=name == "alone") for name in ("one", "other", "alone"))
    assert gpu_tests._groups([alone, one, other, alone]) == [[alone], [one, other], [alone]]


def test_the_parts_of_a_module_are_all_its_tests(load_script, root):
    load_script("gpu_report")
    module = sys.modules["gpu_tests"]
    text = (root / "tests" / "gpu" / "test_gpu_frameworks.py").read_text()
    names = [line.removeprefix("def ").partition("(")[0] for line in text.splitlines() if line.startswith("def test_")]
    parts = [each.select for each in module.FRAMEWORKS if each.subject == "frameworks"]
    positive = [word for select in parts if not select.startswith("not ") for word in select.split(" or ")]
    assert parts[-1] == f"not ({' or '.join(positive)})"
    assert all(sum(word in name for word in positive) <= 1 for name in names), names
    assert all(any(word in name for name in names) for word in positive)
