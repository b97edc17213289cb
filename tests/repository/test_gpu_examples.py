"""The examples of the documentation as `make gpu` runs them, on the simulator."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.simulator


@pytest.fixture
def run_pages(root):
    """Runs `tests/gpu/documented_examples.py` on pages."""

    def run(*pages):
        script = root / "tests" / "gpu" / "documented_examples.py"
        return subprocess.run(
            [sys.executable, str(script), "--simulated", *map(str, pages)],
            env=os.environ | {"COLLECTOR_GPU_TESTS_SIMULATED": "1"},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.medium
def test_the_examples_of_the_readme_run_and_show_what_they_print(run_pages):
    done = run_pages("README.md")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout
    assert "GPU time by annotation" in done.stdout
    assert done.stdout.endswith("Every block ran\n")


@pytest.mark.slow
def test_every_page_runs_but_for_what_only_the_simulated_gpu_has(run_pages):
    done = run_pages()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "== docs/tracing.md" in done.stdout
    assert "left out, as only the simulated GPU has `inject`" in done.stdout


def test_a_block_that_fails_is_named_and_the_others_run(load_module, root, tmp_path, capsys, monkeypatch):
    examples = load_module(root / "tests" / "gpu" / "documented_examples.py")
    monkeypatch.setattr(examples, "names_of_examples", dict)
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\n\n```python\nx / 0\n```\n\n```pycon\n>>> x + 1\n3\n```\n")
    assert examples.run_page(page) == 1
    printed = capsys.readouterr().out
    assert "-- page.md, line 6: FAILED" in printed
    assert "ZeroDivisionError" in printed
    assert "-- page.md, line 10: ran\n2" in printed
