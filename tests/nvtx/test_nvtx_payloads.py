"""Structured payloads of NVTX: a C program with NVIDIA's header registers schemas, among them those of XLA."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from collector.tracing.nvtx import NEXT_TOOL_VARIABLE, VARIABLE
from tests.support.nvtx_headers import include_folder

pytestmark = [pytest.mark.simulator, pytest.mark.slow]

PROGRAM = """
import ctypes, json, sys
import collector
from collector.testing import SimulatedGpu
library = ctypes.CDLL(sys.argv[1])
with SimulatedGpu() as gpu:
    launch = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(lambda kernel: gpu.launch(kernel.decode()) and None)
    for _ in range(2):
        with collector.trace() as step:
            getattr(library, sys.argv[2])(launch)
table = step.recording.annotations
print(json.dumps({
    "kernels": {kernel.name: kernel.annotation for kernel in step.recording.kernels},
    "payloads": {row.name: table.text(row.payload_text_id) for row in table},
    "domains": sorted({table.text(row.domain_name_id) for row in table}),
    "losses": step.ledger.losses(),
}))
"""


def built(source: Path, to: Path, *options: str) -> Path:
    compiler, include = shutil.which("cc"), include_folder("nvToolsExtPayload.h")
    if compiler is None or include is None:
        pytest.skip("STRUCTURED PAYLOADS NOT TESTED: a compiler or nvtx3/nvToolsExtPayload.h is missing")
    bare = {"PATH": os.environ["PATH"], "LC_ALL": "C"}  # no preloaded sanitizer
    command = [compiler, "-shared", "-fPIC", f"-I{include}", *options, "-o", to, source, "-ldl"]
    subprocess.run(command, check=True, env=bare)
    return to


@pytest.fixture(scope="module")
def library(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(root / "tests/nvtx/nvtx_payloads.c", tmp_path_factory.mktemp("payloads") / "payloads.so")


def seen(root: Path, library: Path, function: str, **variables: str) -> dict[str, Any]:
    kept = {name: value for name, value in os.environ.items() if name not in (VARIABLE, NEXT_TOOL_VARIABLE)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, library, function],
        env={**kept, "COLLECTOR_NVTX": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


XLA_PAYLOADS = {
    "jit_step": "XlaModule:#prefix=jit(step),hlo_module=jit_step,program_id=7#, Name: jit_step, Unique ID: 7",
    "jit_step/jit(main)/transpose[permutation=(1, 0)]": "Thunk:#name=jit(main)/transpose[permutation=(1, 0)],"
    "hlo_op=dot.3,unique_hlo_op_id=3#, Source locations: - train.py:12[step] dot, HLO: dot.3 = f32[4,4] dot(a, b)",
    "jit_step/fusion.6": "Thunk:#hlo_op=fusion.6,unique_hlo_op_id=6#",
}


def test_kernels_of_xla_have_the_names_of_its_ops_and_modules(root: Path, library: Path) -> None:
    found = seen(root, library, "run_xla")
    assert found["kernels"] == {
        "dot": "jit_step/jit(main)/transpose[permutation=(1, 0)]",
        "fusion": "jit_step/fusion.6",
    }
    assert found["payloads"] == XLA_PAYLOADS
    assert found["domains"] == ["TSL"]
    assert found["losses"] == []


def test_every_type_with_a_fixed_place_is_read_and_nothing_beyond_the_payload(root: Path, library: Path) -> None:
    found = seen(root, library, "run_types")
    of_outer = (
        "negative: -2, count: 1048576, few: [0.5, 1.5, -1], text: in side, pointer: elsewhere, "
        "inner: {flag: 1, ratio: 0.25}, color: 0xff00ff00, state: BUSY"
    )
    assert found["payloads"] == {"all types": f"{of_outer}, plain, negative: -2", "strange": ""}
    assert found["losses"] == []


def test_long_payloads_are_cut_and_counted(root: Path, library: Path) -> None:
    found = seen(root, library, "run_long")
    numbers = ", ".join(str(1000 + number) for number in range(5000))
    text = " " * 100 + "x" * 3900 + " " * 1000
    whole = {"array": f"numbers: [{numbers}", "pointer": f"pointer: {text}", "text": text, "numbers": numbers}
    cut = {name: payload[:4093] + "…" for name, payload in whole.items()}
    assert found["payloads"] == {**cut, "hidden array": "behind: 7", "like an op": "loss, seq = 5"}
    (loss,) = found["losses"]
    assert loss.startswith("4 annotations, ranges or marks have ")


def test_payloads_entries_and_values_of_any_number_are_read(root: Path, library: Path) -> None:
    found = seen(root, library, "run_many")
    assert found["payloads"] == {
        "entries": ", ".join(str(number % 256) for number in range(300)),
        "payloads": ", ".join(map(str, range(40))),
        "enum": "value: LAST",
    }
    assert found["losses"] == []


def test_ranges_with_a_schema_beyond_the_limit_are_counted(root: Path, library: Path) -> None:
    found = seen(root, library, "run_full")
    assert found["payloads"] == {"known": "number: 7", "last": "number: 7", "own number": ""}
    (loss,) = found["losses"]
    assert loss.startswith("2 NVTX ranges or marks have no text of their own")


def test_an_earlier_version_of_the_extension_has_the_same_layouts(root: Path, tmp_path: Path) -> None:
    source = root / "tests/nvtx/nvtx_payloads.c"
    earlier = built(source, tmp_path / "earlier.so", "-DNVTX_EXT_PAYLOAD_COMPATID=0x0103")
    later = built(source, tmp_path / "later.so", "-DNVTX_EXT_PAYLOAD_COMPATID=0x0105")
    assert seen(root, earlier, "run_xla")["payloads"] == XLA_PAYLOADS
    titles = {name: text.partition("#, ")[0].removesuffix("#") for name, text in XLA_PAYLOADS.items()}
    found = seen(root, later, "run_xla")["payloads"]  # a version that nobody has seen: only titles
    assert {name: text.removesuffix("#") for name, text in found.items()} == titles


def test_a_next_tool_gets_the_ranges_without_payloads_that_have_our_handles(
    root: Path, library: Path, tmp_path: Path
) -> None:
    tool = built(root / "tests/nvtx/chained_tool.c", tmp_path / "tool.so")
    found = seen(root, library, "run_xla", **{VARIABLE: str(tool)})
    assert found["payloads"] == XLA_PAYLOADS
