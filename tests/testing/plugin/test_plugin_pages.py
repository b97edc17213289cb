"""--gpu-html: a page about each test that used the GPU, and an index with links that work without a server."""

from __future__ import annotations

import re
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
    """Text of each link of a page -> the file."""
    found = re.findall(r'<a href="([^"]+)">(.*?)</a>', index.read_text("utf-8"))
    return {text: index.parent / unquote(href) for href, text in found}


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_each_test_has_a_page_and_the_index_leads_to_it(pytester, workers):
    if workers:
        pytest.importorskip("xdist")
    result = run(pytester, TESTS, "--gpu-html=pages", "--gpu-simulate", *workers, apart=bool(workers))
    result.assert_outcomes(passed=4, failed=1)
    index = pytester.path / "pages" / "index.html"
    pages = linked(index)
    assert len(pages) == 4
    assert {path.name for path in pages.values()} | {"index.html"} == {path.name for path in index.parent.iterdir()}
    data = page_of(pages["test_step.py::test_work[sgemm]"])
    assert data["title"] == "test_step.py::test_work[sgemm]"
    assert [step["answers"]["kernels/name"]["values"][0] for step in data["steps"]] == [["sgemm"]]
    text = index.read_text("utf-8")
    assert "test_step.py::test_without_gpu" in text
    assert "<script" not in text
    assert re.search(r"default-src 'none'; style-src 'sha256-[^']+'", text)
    assert " style=" not in text


def test_a_folder_that_cannot_be_written_is_one_error(pytester):
    result = run(pytester, TESTS, "--gpu-html=/dev/full/pages", "--gpu-simulate")
    assert result.ret == 1
    assert result.stdout.str().count("pages cannot be written: cannot write to the folder /dev/full/pages") == 1
