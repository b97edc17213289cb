"""`collector info`, on the simulated GPU and where nothing can be traced."""

from __future__ import annotations

import pytest

from collector.cli import main
from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator


def printed(capsys: pytest.CaptureFixture[str], status: int = 0) -> dict[str, str]:
    assert main(["info", "--source", "native"]) == status
    return dict(line.split(" ", 1)[1].split(": ", 1) for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize(("cuda", "version"), [("12.4", "12.4"), ("13.1", "13.1")])
def test_it_names_driver_libcupti_features_and_devices(cuda, version, capsys):
    with SimulatedGpu(devices=2, cuda=cuda, name="Some card"):
        rows = printed(capsys)
    assert rows["tracing"] == "available"
    assert rows["simulated"].startswith("yes")
    assert f"(CUDA {version})" in rows["driver"]
    assert f"(CUDA {version}, API version" in rows["libcupti"]
    assert rows["libcupti"].endswith("taken because: COLLECTOR_LIBCUPTI names it)")
    assert (rows["device 0"], rows["device 1"]) == ("Some card", "Some card")
    assert rows.get("features") or rows.get("without")


def test_it_states_that_13_2_is_not_called_under_an_older_driver(capsys):
    with SimulatedGpu(cuda="13.2", driver="12.4") as gpu:
        rows = printed(capsys, 1)
        assert gpu.misuse() == {}
    assert rows["tracing"].startswith("unavailable: ")
    assert "13.2" in rows["tracing"]
    assert rows["driver"].endswith("(CUDA 12.4)")
    assert "cuptiGetVersion answers 999" in rows["tracing"]


def test_it_reports_a_missing_libcupti(capsys, tmp_path, monkeypatch):
    with SimulatedGpu():
        monkeypatch.setenv("COLLECTOR_LIBCUPTI", str(tmp_path / "libcupti.so"))
        rows = printed(capsys, 1)
    assert "libcupti" in rows["tracing"]
    assert "(CUDA " in rows["driver"]
    assert rows["COLLECTOR_LIBCUPTI"].endswith("which is not there. Correct it, or unset it to search")


def test_it_reports_a_machine_without_a_device(capsys):
    with SimulatedGpu(devices=0):
        rows = printed(capsys, 1)
    assert "device" in rows["tracing"]
