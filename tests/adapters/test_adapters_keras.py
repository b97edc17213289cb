"""Names from a Keras program on the CPU, by one callback."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from programs import results_of

pytest.importorskip("collector._native", reason="the native extension is not built")
if find_spec("keras") is None or (find_spec("tensorflow") is None and find_spec("torch") is None):
    pytest.skip("NO ADAPTER WAS TRIED BESIDE KERAS: it is not installed", allow_module_level=True)
pytestmark = [pytest.mark.simulator, pytest.mark.slow]


def test_steps_and_layers_have_names_while_the_callback_is_used():
    seen = results_of(str(Path(__file__).with_name("keras_programs.py")))
    step = ["fit/step", "fit/step/inner", "fit/step/inner/dense", "fit/step/inner/launch", "fit/step/out"]
    assert sorted(seen["fit"]) == sorted(step * 2)
    assert seen["launches"] == ["fit/step/inner/launch:launch"] * 2
    epoch = ["fit/step/inner/launch:launch", "evaluate/step/inner/launch:launch"]
    assert seen["fit with validation"] == epoch * 2
    assert seen["predict, then fit without"] == ["predict/step/inner/launch:launch", "launch:launch"]
    assert seen["is as before"]
