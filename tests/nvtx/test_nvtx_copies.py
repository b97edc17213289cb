"""Real copies of NVTX, the forms of calls that each makes, the time when the handler is armed, and domains.

The copies are those of the package nvtx, of CuPy (its extension module alone, which needs no CUDA) and of a C program
that includes NVIDIA's header. Each cell of the matrix is a process, because a copy looks for a tool once.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from collector.testing.simulator.simulator_library import library_path
from collector.tracing.nvtx import NEXT_TOOL_VARIABLE, VARIABLE
from tests.support.nvtx_headers import include_folder, write_cuda_types
from tests.support.nvtx_package import require_nvtx_package

pytestmark = pytest.mark.simulator

PROGRAM = """
import json, os, sys, threading, warnings
warnings.simplefilter("ignore")
ARM, DOMAINS = {arm!r}, {domains!r}
if ARM == "environment":
    os.environ["COLLECTOR_NVTX"] = "1"
{load}
def first_call():
    {first_call}
if ARM == "after the first call":
    first_call()
import collector
from collector.testing import SimulatedGpu
if ARM in ("before the first call", "after the first call"):
    collector.nvtx.arm()
def texts(table):
    columns = [table.texts(column) for column in ("domain_name_id", "category_name_id", "payload_text_id")]
    return [list(row) for row in zip(table.names(), *columns, table.color.tolist())]
with SimulatedGpu() as gpu:
    options = dict(nvtx=True) if ARM == "the trace" else dict()
    options |= dict(nvtx=DOMAINS) if DOMAINS is not None else dict()
    with collector.trace(**options) as step:
        launch = lambda kernel: gpu.launch(kernel) and None
        {calls}
table = step.recording.kernels
print(json.dumps(dict(
    kernels=dict(zip(table.names(), table.annotations())),
    ranges=texts(step.recording.annotations),
    marks=texts(step.recording.nvtx_ranges),
    labels=step.recording.environment.get("device_labels", dict()),
    thread=step.recording.environment["thread_names"].get(threading.get_native_id()),
    missed=step.recording.environment.get("nvtx_missed", ""),
    losses=step.ledger.losses(),
)))
"""
ARMED = ["environment", "before the first call", "the trace"]
MISSED = "after the first call"

PACKAGE = {
    "load": "import nvtx",
    "first_call": "nvtx.mark('first call')",
    "calls": """
        with nvtx.annotate("in default", color="green", payload=3):
            launch("in default")
        with nvtx.annotate("in domain", domain="mine", category="group", color=0xff336699):
            launch("in domain")
        nvtx.push_range("pushed", domain="mine")
        launch("pushed")
        nvtx.pop_range(domain="mine")
        nvtx.push_range("pushed in default")
        launch("pushed in default")
        nvtx.pop_range()
        nvtx.end_range(nvtx.start_range("started", domain="mine"))
        nvtx.mark("mark")
    """,
}
CUPY = {
    "load": "from cupy_backends.cuda.libs import nvtx",
    "first_call": "nvtx.Mark('first call', 0)",
    "calls": """
        nvtx.RangePush("by number", 1)
        launch("by number")
        nvtx.RangePop()
        nvtx.RangePushC("by colour", 0xff336699)
        launch("by colour")
        nvtx.RangePop()
        # CuPy 14.2 gives RangeStart a text that it has freed already, which a sanitizer does not allow to be read.
        if "COLLECTOR_SANITIZED" not in os.environ:
            nvtx.RangeEnd(nvtx.RangeStart("started", 0xff336699))
        nvtx.Mark("mark", 1)
        nvtx.MarkC("mark in colour", 0xff336699)
    """,
}
C_PROGRAM = {
    "load": "import ctypes; library = ctypes.CDLL(os.environ['FORMS_LIBRARY'])",
    "first_call": "library.first_call()",
    "calls": """
        callback = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(lambda kernel: launch(kernel.decode()))
        library.every_push(callback)
        library.every_mark_and_start()
        library.every_name(threading.get_native_id())
        for stream in (11, 12, 13, 14):
            gpu.launch("named stream", stream=stream)
    """,
}
PUSHES = ["push A", "push W", "push Ex", "push Ex wide", "domain A", "domain W", "registered A", "registered W"]
IN_DOMAIN = {"domain A": "one", "registered A": "one", "domain W": "two", "registered W": "two"}


@pytest.fixture(scope="module")
def package() -> dict[str, str]:
    require_nvtx_package()
    return {}


@pytest.fixture(scope="module")
def cupy(load_script: Any) -> dict[str, str]:
    wheels: ModuleType = load_script("cuda_wheels")
    try:
        return {"PYTHONPATH": str(wheels.cupy_nvtx())}
    except wheels.WheelMissingError as error:
        if os.environ.get("COLLECTOR_REQUIRE_WHEELS"):
            raise
        pytest.skip(f"CUPY'S COPY OF NVTX WAS NOT TRIED: {error}")


@pytest.fixture(scope="module")
def c_program(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    compiler, include = shutil.which("cc"), include_folder("nvToolsExtCuda.h")
    if compiler is None or include is None:
        pytest.skip("NVIDIA'S HEADER WAS NOT TRIED: a compiler or nvtx3/nvToolsExt.h is missing")
    folder = tmp_path_factory.mktemp("forms")
    write_cuda_types(folder)
    (folder / "driver_types.h").write_text(
        "typedef struct CUstream_st* cudaStream_t; typedef struct CUevent_st* cudaEvent_t;\n"
    )
    library = folder / "forms.so"
    source = root / "tests/nvtx/nvtx_forms.c"
    bare = {"PATH": os.environ["PATH"], "LC_ALL": "C"}  # no preloaded sanitizer
    command = [compiler, "-shared", "-fPIC", f"-I{folder}", f"-I{include}", "-o", library, source, "-ldl"]
    subprocess.run(command, check=True, env=bare)
    return {"FORMS_LIBRARY": str(library)}


def seen(root: Path, program: dict[str, str], environment: dict[str, str], arm: str, domains: Any = None) -> Any:
    kept = {name: value for name, value in os.environ.items() if name not in (VARIABLE, NEXT_TOOL_VARIABLE)}
    paths = [environment.get("PYTHONPATH"), os.environ.get("PYTHONPATH")]
    parts = {**program, "calls": textwrap.indent(textwrap.dedent(program["calls"]), " " * 8).strip()}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(arm=arm, domains=domains, **parts)],
        env={**kept, **environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.medium
@pytest.mark.parametrize("arm", ARMED)
def test_the_package_nvtx(root: Path, package: dict[str, str], arm: str) -> None:
    found = seen(root, PACKAGE, package, arm)
    names = ["in default", "in domain", "pushed", "pushed in default"]
    assert found["kernels"] == {name: name for name in names}
    first, second, *others = found["ranges"]
    assert first[:2] == ["in default", ""]
    assert (first[3], first[4]) == ("3", 0x008000)
    assert second == ["in domain", "mine", "group", "", 0xFF336699]
    assert [row[:2] for row in others] == [["pushed", "mine"], ["pushed in default", ""]]
    assert [row[:2] for row in found["marks"]] == [["started", "mine"], ["mark", ""]]
    assert (found["losses"], found["missed"]) == ([], "")


@pytest.mark.medium
@pytest.mark.parametrize("arm", ARMED)
def test_cupy(root: Path, cupy: dict[str, str], arm: str) -> None:
    found = seen(root, CUPY, cupy, arm)
    assert found["kernels"] == {name: name for name in ("by number", "by colour")}
    assert [row[4] for row in found["ranges"]] == [0xFF007FFF, 0xFF336699]  # the first is the number's in CuPy's table
    names = [row[0] for row in found["marks"]]
    assert names[-2:] == ["mark", "mark in colour"]
    assert len(names) == (2 if "COLLECTOR_SANITIZED" in os.environ else 3)
    assert (found["losses"], found["missed"]) == ([], "")


@pytest.mark.medium
@pytest.mark.parametrize("arm", ARMED)
def test_a_c_program(root: Path, c_program: dict[str, str], arm: str) -> None:
    found = seen(root, C_PROGRAM, c_program, arm)
    assert found["kernels"] == {**{name: name for name in PUSHES}, "named stream": ""}
    plain = {"push A", "push W"}
    categories = {"": "ascii category", "one": "of one", "two": "of two"}
    for name, domain, category, payload, color in found["ranges"]:
        assert domain == IN_DOMAIN.get(name, "")
        stated = ("", "", 0) if name in plain else (categories[domain], "42", 0xFF336699)
        assert (category, payload, color) == stated, name
    assert [row[0] for row in found["ranges"]] == PUSHES
    assert [row[:3] for row in found["marks"]] == [
        ["mark A", "", ""],
        ["mark W", "", ""],
        ["mark Ex", "", "wide category"],
        ["start A", "", ""],
        ["start W", "", ""],
        ["start Ex", "", "wide category"],
        ["domain mark", "one", "of one"],
        ["domain start", "one", "of one"],
    ]
    assert found["thread"] == "main"
    assert found["labels"] == {
        "/gpu:0": "device",
        "/gpu:0/stream:11": "driver A",
        "/gpu:0/stream:12": "driver W",
        "/gpu:0/stream:13": "runtime A",
        "/gpu:0/stream:14": "runtime W",
    }
    assert (found["losses"], found["missed"]) == ([], "")


@pytest.mark.medium
@pytest.mark.parametrize("copy", ["package", "cupy", "c_program"])
def test_a_copy_that_was_used_before_sees_nothing_and_is_named(
    root: Path, request: pytest.FixtureRequest, copy: str
) -> None:
    program = {"package": PACKAGE, "cupy": CUPY, "c_program": C_PROGRAM}[copy]
    found = seen(root, program, request.getfixturevalue(copy), MISSED)
    assert set(found["kernels"].values()) == {""}
    assert found["ranges"] == found["marks"] == []
    # Not all libraries have the symbols that tell.
    if found["missed"]:
        (loss,) = found["losses"]
        assert loss.startswith("NVTX of 1 library was in use before the handler was armed")
    assert found["missed"] or copy == "cupy"


@pytest.mark.medium
@pytest.mark.parametrize(
    ("copy", "domains", "named"),
    [
        ("package", ["mine"], {"in domain", "pushed"}),
        ("package", [""], {"in default", "pushed in default"}),
        ("cupy", [""], {"by number", "by colour"}),
        ("cupy", ["mine"], set()),
        ("c_program", ["one"], {"domain A", "registered A"}),
        ("c_program", ["two", ""], {*PUSHES} - {"domain A", "registered A"}),
    ],
)
def test_only_chosen_domains_are_recorded(
    root: Path, request: pytest.FixtureRequest, copy: str, domains: list[str], named: set[str]
) -> None:
    program = {"package": PACKAGE, "cupy": CUPY, "c_program": C_PROGRAM}[copy]
    found = seen(root, program, request.getfixturevalue(copy), "before the first call", domains)
    assert {kernel for kernel, annotation in found["kernels"].items() if annotation} == named


@pytest.mark.medium
def test_a_missed_copy_and_a_fresh_one_in_one_process(
    root: Path, package: dict[str, str], cupy: dict[str, str]
) -> None:
    """The package was used too early; CuPy's copy had made no call yet."""
    both = {
        "load": "import nvtx as early\nfrom cupy_backends.cuda.libs import nvtx",
        "first_call": "early.mark('first call')",
        "calls": """
            with early.annotate("missed"):
                launch("missed")
                nvtx.RangePush("seen", 0)
                launch("seen")
                nvtx.RangePop()
        """,
    }
    found = seen(root, both, {**package, **cupy}, MISSED)
    assert found["kernels"] == {"missed": "", "seen": "seen"}
    assert found["missed"].endswith(".so")
    assert ", " not in found["missed"]


REPLACED = """
import ctypes, os, sys
from collector import _native

def state() -> str:
    return next(state for library, state in _native.nvtx_copies() if library == loaded)

new, loaded = sys.argv[1:]
library = ctypes.CDLL(loaded)
os.environ.pop("NVTX_INJECTION64_PATH", None)
if "known" in new:
    print(state())
os.replace(new, loaded)
print(state())
"""


@pytest.mark.medium
@pytest.mark.parametrize("build_id", ["sha1", "none"])
def test_a_library_whose_file_was_replaced_is_not_read_by_the_new_file(
    root: Path, tmp_path: Path, build_id: str
) -> None:
    """The upgrade of a package while a program runs: the addresses in the new file are none of the loaded library."""
    compiler, include = shutil.which("cc"), include_folder()
    if compiler is None or include is None:
        pytest.skip("A REPLACED LIBRARY WAS NOT TRIED: a compiler or nvtx3/nvToolsExt.h is missing")
    source = tmp_path / "library.c"
    source.write_text("#include <nvtx3/nvToolsExt.h>\nPAD\nvoid mark(void) { nvtxMarkA(0); }\n")
    pad = "-DPAD=const char pad[1<<24]={1};"
    for name, option in {"loaded": "-DPAD=", "loaded-known": "-DPAD=", "new": pad, "new-known": pad}.items():
        command = [compiler, "-shared", "-fPIC", f"-I{include}", option, f"-Wl,--build-id={build_id}"]
        subprocess.run([*command, "-o", tmp_path / f"{name}.so", source, "-ldl"], check=True)

    def states(suffix: str) -> list[str]:
        command = [sys.executable, "-c", REPLACED, tmp_path / f"new{suffix}.so", tmp_path / f"loaded{suffix}.so"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert states("") == ["unknown"]
    assert states("-known") == ["fresh", "fresh"]  # the file was read before


NO_LIBRARY_ANY_MORE = """
import ctypes, os, sys
from collector import _native

ctypes.CDLL(sys.argv[1])
os.unlink(sys.argv[1])
os.mkfifo(sys.argv[1])
print([library for library, _ in _native.nvtx_copies() if library == sys.argv[1]])
"""


@pytest.mark.medium
def test_a_pipe_in_the_place_of_a_library_is_not_waited_for(tmp_path: Path) -> None:
    library = shutil.copy(library_path(), tmp_path / "library.so")
    command = [sys.executable, "-c", NO_LIBRARY_ANY_MORE, library]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr
