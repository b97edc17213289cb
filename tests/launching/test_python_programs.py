"""`collector run --python`: names and stacks of Python programs, which notice nothing of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from injected_programs import launching_program, simulator_environment

import collector
from collector.launching.run_environment import RunOptions, run_environment

pytestmark = [pytest.mark.simulator, pytest.mark.slow]

PROGRAM = """
import ctypes, os, sys
driver = ctypes.CDLL(os.environ["COLLECTOR_LIBCUDA"])
def launch(name):
    function = ctypes.c_char_p()
    driver.cuModuleGetFunction(ctypes.byref(function), None, name)
    assert driver.cuLaunchKernel(function, 8, 1, 1, 64, 1, 1, 0, None, None, None) == 0
    assert driver.cuCtxSynchronize() == 0
def initialise():
    assert driver.cuInit(0) == 0
    context = ctypes.c_void_p()
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxSetCurrent(context)
initialise()
"""
"""A Python program that knows nothing of the collector, up to CUDA's initialisation."""
FACTS = """
import json, sys
own = [each for each in sys.path if "python_startup" in each]
module = sys.modules.get("sitecustomize")
finders = [type(each).__name__ for each in sys.meta_path if "AfterImport" in type(each).__name__]
print(json.dumps([own, getattr(module, "__file__", None), finders, list(sys.argv[1:])]))
"""
TRITON = """
class Chain:
    def __init__(self): self.calls = []
    def add(self, f): self.calls.append(f)
    def remove(self, f): self.calls.remove(f)
class runtime:
    launch_enter_hook, launch_exit_hook = Chain(), Chain()
"""
"""A stand-in for triton.knobs, whose launcher would call the hooks."""


def run(
    cwd: Path, *words: str | Path, given: str = "", python: bool = True, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "collector", "run", *(["--python"] if python else []), *map(str, words)],
        env={name: value for name, value in simulator_environment().items() if name != "PYTHONPATH"} | variables,
        cwd=cwd,
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )


def annotations(path: Path) -> list[str]:
    return collector.load(path).recording.annotations_of(collector.load(path).recording.kernels)


def test_annotations_have_the_stack_at_their_entry(tmp_path):
    (tmp_path / "program.py").write_text(
        PROGRAM
        + "import collector\ndef train():\n    with collector.annotate('step'):\n        launch(b'work')\ntrain()\n"
    )
    done = run(tmp_path, "-q", "-o", "out.gpurec", "program.py")
    assert (done.returncode, done.stdout) == (0, "")
    recording = collector.load(tmp_path / "out.gpurec").recording
    (details,) = recording.details
    assert [(Path(frame.file).name, frame.function) for frame in details.stack] == [
        ("program.py", "<module>"),
        ("program.py", "train"),
    ]
    assert run(tmp_path, "-q", "-o", "plain.gpurec", "program.py", python=False).returncode == 0
    assert collector.load(tmp_path / "plain.gpurec").recording.details == ()


def test_a_framework_has_names_once_it_is_imported(tmp_path):
    package = tmp_path / "triton"
    package.mkdir()
    (package / "__init__.py").write_text("from triton import knobs\n")
    (package / "knobs.py").write_text(TRITON)
    (tmp_path / "program.py").write_text(
        PROGRAM
        + """
assert "collector" not in sys.modules
import triton
class metadata:
    def get(): return {"name": "matmul", "flops": 8}
hooks = triton.knobs.runtime
for hook in hooks.launch_enter_hook.calls: hook(metadata)
launch(b"work")
for hook in hooks.launch_exit_hook.calls: hook(metadata)
launch(b"other")
print(triton.__spec__.loader.__class__.__name__, "exec_module" in vars(triton.__spec__.loader))
"""
    )
    done = run(tmp_path, "-q", "-o", "out.gpurec", "program.py")
    assert (done.returncode, done.stdout) == (0, "SourceFileLoader False\n"), done.stderr
    assert annotations(tmp_path / "out.gpurec") == ["matmul", ""]
    assert collector.load(tmp_path / "out.gpurec").recording.details[0].flops == 8


def test_what_the_program_sees_of_it(tmp_path):
    """No folder in sys.path, no module, its own arguments, input and exit status."""
    (tmp_path / "program.py").write_text(PROGRAM + "launch(b'work')" + FACTS + "print(input()); sys.exit(9)")
    done = run(tmp_path, "-q", "-o", "out.gpurec", "program.py", "one", given="typed\n")
    facts, typed = done.stdout.splitlines()
    assert (done.returncode, typed) == (9, "typed")
    assert json.loads(facts) == [[], None, ["_AfterImport"], ["one"]]
    assert done.stderr == "collector: the trace is in out.gpurec\n"


@pytest.mark.parametrize("place", ["PYTHONPATH", "usercustomize"])
def test_a_sitecustomize_of_the_program_runs(tmp_path, place):
    own = tmp_path / "own"
    own.mkdir()
    module = "sitecustomize" if place == "PYTHONPATH" else place
    (own / f"{module}.py").write_text(f"import sys; sys.own = __name__, '{module}' in sys.modules\n")
    (tmp_path / "program.py").write_text(PROGRAM + "launch(b'work'); print(*sys.own)" + FACTS)
    variables = {"PYTHONPATH": str(own)} if place == "PYTHONPATH" else {"PYTHONUSERBASE": str(tmp_path / "base")}
    if place != "PYTHONPATH":
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        site = tmp_path / "base" / "lib" / version / "site-packages"
        site.parent.mkdir(parents=True)
        own.rename(site)
    done = run(tmp_path, "-q", "-o", "out.gpurec", "program.py", **variables)
    if place != "PYTHONPATH" and sys.prefix != sys.base_prefix:  # a virtual environment has no site of the user
        assert "own" in done.stderr
        return
    seen, facts = done.stdout.splitlines()
    assert seen == f"{module} True"
    if place == "PYTHONPATH":
        assert json.loads(facts)[1] == str(own / "sitecustomize.py")


def test_python_reports_an_error_in_the_programs_sitecustomize_as_ever(tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("raise RuntimeError('of the program')\n")
    (tmp_path / "program.py").write_text(PROGRAM + "launch(b'work')")
    plain, traced = (
        run(tmp_path, "-q", "-o", "out.gpurec", "program.py", PYTHONPATH=str(own), python=python)
        for python in (False, True)
    )
    assert traced.returncode == plain.returncode == 0
    assert traced.stderr == plain.stderr
    assert "of the program" in traced.stderr


@pytest.mark.parametrize("option", ["-S", "-I", "-E"])
def test_a_python_without_site_is_named(tmp_path, option):
    (tmp_path / "program.py").write_text(PROGRAM + "launch(b'work')")
    done = run(tmp_path, "-q", "-o", "out.gpurec", "--", sys.executable, option, "program.py")
    assert done.returncode == 0
    note, saved = done.stderr.splitlines()
    assert "no names of Python: Python was started without site or its environment (-S, -I, -E)" in note
    assert saved == "collector: the trace is in out.gpurec"


def test_an_interpreter_that_cannot_import_the_collector_is_named(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    (tmp_path / "program.py").write_text(PROGRAM + "launch(b'work')" + FACTS)
    python = tmp_path / "venv" / "bin" / "python"
    done = run(tmp_path, "-q", "-o", "out.gpurec", "--", python, "program.py")
    assert done.returncode == 0
    assert json.loads(done.stdout) == [[], None, [], []]
    note, _ = done.stderr.splitlines()
    assert f"no names of Python: {python} (Python 3." in note
    assert note.endswith("cannot import collector: install cupti-collector there")


def test_a_reason_that_the_locale_cannot_encode_is_reported(tmp_path):
    """The program must not see an error, and Python's own text files cannot have the path."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "caf\xe9"], check=True)
    (tmp_path / "program.py").write_text(PROGRAM + "launch(b'work')" + FACTS)
    python = tmp_path / "caf\xe9" / "bin" / "python"
    done = run(tmp_path, "-q", "-o", "out.gpurec", "--", python, "program.py", LC_ALL="C", PYTHONUTF8="0")
    assert done.returncode == 0
    note, _ = done.stderr.splitlines()
    assert "no names of Python: " in note
    assert note.endswith("cannot import collector: install cupti-collector there")


def test_another_installation_of_the_collector_is_named(tmp_path):
    """Its annotations go to its own library, and the recording is in that of the command."""
    site = tmp_path / "site"
    shutil.copytree(Path(collector.__file__).parent, site / "collector", ignore=shutil.ignore_patterns("__pycache__"))
    (site / "triton.py").write_text("")
    (tmp_path / "program.py").write_text(PROGRAM + "import triton; launch(b'work')")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    done = run(tmp_path, "-q", "-o", "out.gpurec", "--", python, "program.py", PYTHONPATH=str(site))
    assert done.returncode == 0
    note, _ = done.stderr.splitlines()
    assert "triton has no names: CollectorError:" in note
    assert "is of another installation of the collector" in note


def test_spawned_children_have_names_too(tmp_path):
    (tmp_path / "program.py").write_text(
        PROGRAM.removesuffix("initialise()\n")
        + """
import multiprocessing
def work(number):
    import collector
    initialise()
    with collector.annotate("child"):
        launch(b"work")
    return len([each for each in sys.path if "python_startup" in each])
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(work, range(2), chunksize=1))
        pool.close()
        pool.join()
"""
    )
    done = run(tmp_path, "-q", "-o", "out{pid}.gpurec", "program.py")
    assert (done.returncode, done.stdout) == (0, "[0, 0]\n"), done.stderr
    files = sorted(tmp_path.glob("out*.gpurec"))
    assert {name for path in files for name in annotations(path)} == {"child"}
    assert all(collector.load(path).recording.details[0].stack for path in files)


def test_programs_in_other_languages_are_as_ever(tmp_path):
    done = run(tmp_path, "-q", "-o", "out.gpurec", launching_program(), "exit", "5")
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "collector: the trace is in out.gpurec\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [([], []), (["/a", "/b"], ["/a", "/b"]), (["", "/a", ""], ["", "/a", ""]), (None, [])],
)
def test_the_path_of_the_programs_children(tmp_path, before, after):
    """An empty entry beside others is the working directory of the program."""
    environment = {} if before is None else {"PYTHONPATH": os.pathsep.join(before)}
    for _ in range(2):  # also inside of another run
        environment = run_environment(tmp_path, RunOptions(python=True), environment)
    first, *others = environment["PYTHONPATH"].split(os.pathsep)
    assert Path(first).name == "python_startup"
    assert others == after
    assert "PYTHONPATH" not in run_environment(tmp_path, RunOptions(), {})


def interpreters() -> list[str]:
    found = sorted(Path.home().glob(".pyenv/versions/*/bin/python"))
    return [str(path) for path in found]


@pytest.mark.parametrize("python", interpreters() or [sys.executable])
def test_every_python_can_run_it(tmp_path, python):
    """Also those that the collector does not know: the program must not see an error."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.own = 'own'\n")
    plain = {"PYTHONDONTWRITEBYTECODE": "1"}  # Python 2 would write beside the file
    environment = run_environment(tmp_path, RunOptions(python=True), {**plain, "PYTHONPATH": str(tmp_path)})
    code = "import sys; print(sys.own); print([each for each in sys.path if 'python_startup' in each])"
    done = subprocess.run([python, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "own\n[]\n", "")
    environment = run_environment(tmp_path, RunOptions(python=True), plain)
    code = "import sys; print('sitecustomize' in sys.modules)"
    done = subprocess.run([python, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("False\n", "")
