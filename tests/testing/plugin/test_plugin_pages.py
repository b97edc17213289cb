"""--gpu-html: a page about each test that used the GPU, and an index with links that work without a server."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

import pytest
from plugin_runs import run
from report_pages import page_of

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.simulator

TESTS = """
import pytest

@pytest.mark.parametrize("name", ["sgemm", "</script><script>alert(1)</script>", "a b"])
def test_work(simulated_gpu, gpu_trace, name):
    with gpu_trace():
        simulated_gpu.launch(name)

def test_fails(simulated_gpu, gpu_trace):
    with gpu_trace():
        simulated_gpu.launch("relu")
    assert False

def test_without_gpu():
    pass
"""


def linked(index: Path) -> dict[str, Path]:
    """Test -> the page that its row leads to."""
    [table] = page_of(index)["tables"]
    tests = table["answer"]["values"][0]
    return {test: index.parent / unquote(link) for test, link in zip(tests, table["links"], strict=True) if link}


@pytest.mark.medium
@pytest.mark.parametrize(
    "workers", [pytest.param((), id="alone"), pytest.param(("-n", "2"), id="xdist", marks=pytest.mark.slow)]
)
def test_each_test_has_a_page_and_the_index_leads_to_it(pytester, workers):
    if workers:
        pytest.importorskip("xdist")
    result = run(pytester, TESTS, "--gpu-html=pages", "--gpu-simulate", *workers, apart=bool(workers))
    result.assert_outcomes(passed=4, failed=1)
    index = pytester.path / "pages" / "index.html"
    result.stdout.fnmatch_lines([f"pages about the tests: {index}"])
    pages = linked(index)
    assert len(pages) == 4
    assert {path.name for path in pages.values()} | {"index.html"} == {path.name for path in index.parent.iterdir()}
    data = page_of(pages["test_step.py::test_work[sgemm]"])
    assert data["title"] == "test_step.py::test_work[sgemm]"
    assert [step["answers"]["kernels/name"]["values"][0] for step in data["steps"]] == [["sgemm"]]
    [table] = page_of(index)["tables"]
    columns = dict(zip([each["name"] for each in table["answer"]["columns"]], table["answer"]["values"], strict=True))
    assert "test_step.py::test_without_gpu" in columns["test"]
    assert sorted(columns["kernels"]) == [0, 1, 1, 1, 1]
    assert sorted(columns["outcome"]) == ["failed", *["passed"] * 4]
    assert "alert(1)" not in index.read_text("utf-8")


@pytest.mark.viewer
@pytest.mark.slow
def test_the_index_is_sorted_searched_and_left_for_a_test(pytester, report_page):
    run(pytester, TESTS, "--gpu-html=pages", "--gpu-simulate")
    index = pytester.path / "pages" / "index.html"
    page = report_page.page
    page.goto(f"{index.as_uri()}#q=sgemm")
    page.wait_for_selector("section[aria-label=Tests] tbody tr")
    [row] = report_page.table("Tests")
    assert row[0] == "test_step.py::test_work[sgemm]"
    assert report_page.unlawful() == []
    page.get_by_role("link", name="sgemm").click()
    page.wait_for_selector("nav[aria-label=views]")
    assert page.inner_text("h1") == "test_step.py::test_work[sgemm]"


@pytest.mark.medium
def test_a_folder_that_cannot_be_written_is_one_error(pytester):
    result = run(pytester, TESTS, "--gpu-html=/dev/full/pages", "--gpu-simulate")
    assert result.ret == 1
    assert result.stdout.str().count("pages cannot be written: cannot write to the folder /dev/full/pages") == 1
    assert "pages about the tests" not in result.stdout.str()
