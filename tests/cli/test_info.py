"""`collector info`, on the simulated GPU and where nothing can be traced."""

from __future__ import annotations

import pytest

from collector.cli import main
from collector.testing import SimulatedGpu

pytestmark = pytest.mark.simulator


def printed(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    assert main(["info", "--source", "native"]) == 0
    return dict(line.split(": ", 1) for line in capsys.readouterr().out.splitlines())


@pytest.mark.parametrize(("cuda", "version"), [("12.4", "12.4"), ("13.1", "13.1")])
def test_it_tells_driver_libcupti_features_and_devices(cuda, version, capsys):
    with SimulatedGpu(devices=2, cuda=cuda, name="Some card"):
        rows = printed(capsys)
    assert rows["tracing"] == "available"
    assert rows["simulated"].startswith("yes")
    assert rows["CUPTI's CUDA"] == version
    assert f"(CUDA {version})" in rows["driver"]
    assert "API version" in rows["libcupti"]
    assert (rows["device 0"], rows["device 1"]) == ("Some card", "Some card")
    assert rows.get("features") or rows.get("without")


def test_it_tells_that_13_2_is_not_called_under_an_older_driver(capsys):
    with SimulatedGpu(cuda="13.2", driver="12.4") as gpu:
        rows = printed(capsys)
        assert gpu.misuse() == {}
    assert rows["tracing"] == "unavailable"
    assert "13.2" in rows["cause"]
    assert rows["remedy"]


def test_it_tells_of_a_missing_libcupti(capsys, tmp_path, monkeypatch):
    with SimulatedGpu():
        monkeypatch.setenv("COLLECTOR_LIBCUPTI", str(tmp_path / "libcupti.so"))
        rows = printed(capsys)
    assert rows["tracing"] == "unavailable"
    assert "libcupti" in rows["cause"]
    assert rows["remedy"]


def test_it_tells_of_a_machine_without_a_device(capsys):
    with SimulatedGpu(devices=0):
        rows = printed(capsys)
    assert rows["tracing"] == "unavailable"
    assert "device" in rows["cause"]
