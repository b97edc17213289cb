"""The search for CUDA's compiler, which the GPU tests and the questions to a card share."""

import pytest
from injected_programs import range_program_of_the_runtime
from nvcc import find_nvcc


@pytest.fixture
def toolkit(tmp_path, monkeypatch):
    """A toolkit in a folder that only CUDA_HOME names."""
    nvcc = tmp_path / "cuda" / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text("#!/bin/sh\n")
    nvcc.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    return nvcc


def test_nvcc_is_found_in_a_toolkit_and_first_on_the_path(toolkit, tmp_path, monkeypatch):
    assert find_nvcc() == str(toolkit)
    other = tmp_path / "nvcc"
    other.write_bytes(toolkit.read_bytes())
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_nvcc() == str(other)


def test_a_missing_nvcc_is_a_failure_where_a_gpu_is_required(monkeypatch):
    monkeypatch.setattr("injected_programs.find_nvcc", lambda: None)
    with pytest.raises(pytest.skip.Exception, match="nvcc is neither on PATH"):
        range_program_of_the_runtime("sm_90")
    monkeypatch.setenv("COLLECTOR_REQUIRE_GPU", "1")
    with pytest.raises(RuntimeError, match="COLLECTOR_REQUIRE_GPU is set, but nvcc is neither on PATH"):
        range_program_of_the_runtime("sm_90")
