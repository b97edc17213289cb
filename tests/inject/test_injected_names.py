"""Names that a program gives by NVTX, in the journal of a program that imports and links nothing of ours."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from injected_programs import injected_environment

import collector
from collector import analysis
from collector.recording.stream_names import stream_names
from collector.runtime.extension import capture_library
from collector.testing.simulator.simulator_library import library_path
from tests.support.nvtx_headers import include_folder, write_cuda_types

pytestmark = [pytest.mark.simulator, pytest.mark.slow]


@pytest.fixture(scope="module")
def program(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler, include = shutil.which("cc"), include_folder("nvToolsExtCuda.h")
    if compiler is None or include is None:
        pytest.skip("NAMES IN JOURNALS NOT TESTED: a compiler or nvtx3/nvToolsExtCuda.h is missing")
    folder = tmp_path_factory.mktemp("naming")
    write_cuda_types(folder)
    driver = library_path()
    link = [f"-L{driver.parent}", f"-l:{driver.name}", f"-Wl,-rpath,{driver.parent}", "-ldl"]
    source, built = root / "tests/inject/naming_program.c", folder / "program"
    subprocess.run([compiler, "-std=gnu11", f"-I{folder}", f"-I{include}", "-o", built, source, *link], check=True)
    return built


@pytest.mark.parametrize("arguments", [(), ("kill",)])
def test_a_journal_has_the_names_of_gpus_streams_and_threads(
    program: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    folder = tmp_path / "journals"
    folder.mkdir()
    environment = injected_environment(folder, NVTX_INJECTION64_PATH=str(capture_library()))
    done = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (-9 if arguments else 0, "")
    (journal,) = folder.iterdir()
    recording = collector.load(journal).recording
    labels = {"/gpu:0": "first GPU", "/gpu:0/stream:21": "compute", "/gpu:0/stream:22": "copies"}
    assert recording.environment["device_labels"] == labels
    assert "trainer" in recording.environment.get("thread_names", {}).values()
    assert sorted(stream_names(recording).values()) == ["compute", "copies"]
    answer = analysis.streams(recording)
    assert [(row["stream_id"], row["stream_name"]) for row in answer] == [(21, "compute"), (22, "copies")]
    assert recording.ledger.complete == (not arguments)
