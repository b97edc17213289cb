"""The distributed packages: built from the source distribution as a user's pip does, without any CUDA library."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from collector import _native
from collector.runtime.extension import capture_library

# What a Linux machine has; libcuda and libcupti are opened at run time, by path, and never linked.
SYSTEM_LIBRARIES = {
    "libstdc++",
    "libgcc_s",
    "libc",
    "libm",
    "libdl",
    "libpthread",
    "ld-linux-x86-64",
    "ld-linux-aarch64",
}


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run without the variables that could lead a build or an import to an installed CUDA or to this checkout."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("CUDA", "PYTHON", "LD_", "CPATH"))
    }
    return subprocess.run(command, cwd=cwd, env={**kept, **environment}, capture_output=True, text=True, check=False)


def built(form: str, source: Path, folder: Path, *options: str, **environment: str) -> Path:
    """Build an ``sdist`` or a ``wheel`` of a folder in isolation."""
    command = (sys.executable, "-m", "build", f"--{form}", *options, "--outdir", folder, source)
    done = run(*command, cwd=folder, **environment)
    if done.returncode != 0 and re.search(
        "Could not find a version|No matching distribution", done.stdout + done.stderr
    ):
        if os.environ.get("COLLECTOR_REQUIRE_WHEELS"):
            pytest.fail(done.stderr[-2000:])
        pytest.skip("PACKAGES NOT BUILT: the build's requirements cannot be downloaded")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    (distribution,) = folder.glob("*.tar.gz" if form == "sdist" else "*.whl")
    return distribution


@pytest.fixture(scope="module")
def distributions(root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source distribution, and the wheel built from what it holds."""
    folder = tmp_path_factory.mktemp("dist")
    sdist = built("sdist", root, folder)
    shutil.unpack_archive(sdist, folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    source = folder / sdist.name.removesuffix(".tar.gz")
    # With the options and the relative paths of the editable install: a compiler cache then has what that one compiled.
    options = ["-Cbuild-dir=build/editable", *(["-Ccmake.define.COLLECTOR_WERROR=ON"] if os.environ.get("CI") else [])]
    return sdist, built("wheel", source, folder, *options, CCACHE_BASEDIR=str(source))


def tracked(root: Path, *paths: str) -> set[str]:
    listed = subprocess.run(["git", "ls-files", *paths], cwd=root, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout: what should be shipped is not known")
    return set(listed.stdout.split())


def test_no_cuda_header_is_included_anywhere(root: Path) -> None:
    included = {
        (path.name, header)
        for path in (root / "native").rglob("*.[ch]*")
        for header in re.findall(r'^\s*#\s*include\s*[<"]([^>"]+)', path.read_text(), re.MULTILINE)
    }
    assert included
    ours = {str(path.relative_to(root / "native")) for path in (root / "native").rglob("*.h")}
    foreign = {header for _, header in included if header not in ours}
    assert not [header for header in foreign if re.match(r"cu(da|pti|rand|blas)|nv|generated_cuda", header)]


@pytest.mark.slow
def test_sdist_holds_what_a_build_needs(distributions: tuple[Path, Path], root: Path) -> None:
    with tarfile.open(distributions[0]) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    needed = tracked(root, "native", "collector", "protos", "pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE")
    assert needed - names == set()
    assert not [name for name in names if name.startswith((".ci", "build/", ".venv"))]


@pytest.mark.slow
def test_wheel_holds_the_typed_package_and_its_libraries(distributions: tuple[Path, Path], root: Path) -> None:
    with zipfile.ZipFile(distributions[1]) as archive:
        names = set(archive.namelist())
    assert tracked(root, "collector") - names == set()
    assert "collector/py.typed" in names
    assert {"collector/libcollector_capture.so", "collector/testing/libcollector_simulator.so"} <= names
    for extension in ("_native", "_convert"):
        assert [name for name in names if re.fullmatch(rf"collector/{extension}\..*\.so", name)]
    assert {name.split("/")[0] for name in names} == {
        "collector",
        next(n for n in names if "dist-info" in n).split("/")[0],
    }
    assert [name for name in names if name.endswith("licenses/LICENSE")]


@pytest.mark.slow
def test_libraries_link_nothing_of_cuda(distributions: tuple[Path, Path], tmp_path: Path) -> None:
    with zipfile.ZipFile(distributions[1]) as archive:
        libraries = [name for name in archive.namelist() if name.endswith(".so")]
        archive.extractall(tmp_path, libraries)
    assert {Path(name).name.split(".")[0] for name in libraries} == {
        "_convert",
        "_native",
        "libcollector_capture",
        "libcollector_simulator",
    }
    for library in libraries:
        links_capture = Path(library).name.startswith("_native")
        dynamic = run("readelf", "--wide", "--dynamic", tmp_path / library, cwd=tmp_path).stdout
        needed = re.findall(r"\(NEEDED\).*\[([^\]]+)\]", dynamic)
        assert needed
        assert {name.split(".so")[0] for name in needed} - SYSTEM_LIBRARIES == (
            {"libcollector_capture"} if links_capture else set()
        ), library
        folders = re.findall(r"\((?:RPATH|RUNPATH)\).*\[([^\]]*)\]", dynamic)
        assert folders == (["$ORIGIN"] if links_capture else []), library
        symbols = run("readelf", "--wide", "--dyn-syms", tmp_path / library, cwd=tmp_path).stdout
        undefined = re.findall(r"\bUND\s+(\S+)", symbols)
        assert undefined
        assert not [name for name in undefined if re.match(r"cu(da|pti)?[A-Z]", name)], library


def test_the_extension_does_not_keep_the_length_of_its_build_folder(tmp_path: Path) -> None:
    """A search path that is written over a longer one leaves zeros, so that builds in two folders differ."""
    assert _native.__file__ is not None
    if shutil.which("readelf") is None:
        pytest.skip("EQUAL BUILDS NOT TESTED: there is no readelf")
    sections = run("readelf", "--wide", "--section-headers", _native.__file__, cwd=tmp_path).stdout
    place = re.search(r"\.dynstr\s+STRTAB\s+\S+\s+(\S+)\s+(\S+)", sections)
    assert place is not None
    offset, size = (int(number, 16) for number in place.groups())
    strings = Path(_native.__file__).read_bytes()[offset : offset + size]
    assert b"\0$ORIGIN\0" in strings
    assert b"\0\0" not in strings


def test_the_capture_library_exports_its_own_symbols_alone_and_is_never_unmapped(tmp_path: Path) -> None:
    """Programs that know nothing of it load it: a symbol of the standard library's in it would replace theirs."""
    library = capture_library()
    assert library is not None
    if shutil.which("readelf") is None:
        pytest.skip("EXPORTED SYMBOLS NOT TESTED: there is no readelf")
    dynamic = run("readelf", "--wide", "--dynamic", library, cwd=tmp_path).stdout
    assert re.search(r"\(FLAGS_1\).*\bNODELETE\b", dynamic)
    symbols = run("readelf", "--wide", "--dyn-syms", library, cwd=tmp_path).stdout
    exported = set(re.findall(r"(?:GLOBAL|WEAK|UNIQUE)\s+(?:DEFAULT|PROTECTED)\s+(?:\d+|ABS)\s+(\S+)", symbols))
    entry_points = {"InitializeInjection", "InitializeInjectionNvtx2", "InitializeInjectionNvtxExtension"}
    assert entry_points < exported
    # The name of a symbol of ours has our namespace, if only in the parameter of a template.
    assert {name for name in exported - entry_points if not re.match("_Z.*9collector", name)} == set()


@pytest.mark.slow
def test_wheel_works_in_an_environment_of_its_own(distributions: tuple[Path, Path], tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", symlinks=True)
    python = tmp_path / "venv/bin/python"
    into = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile")
    installed = run(*into, distributions[1], cwd=tmp_path)
    assert installed.returncode == 0, installed.stderr
    imported = run(python, "-W", "error", "-c", "import collector; print(collector.__file__)", cwd=tmp_path)
    assert imported.returncode == 0, imported.stderr
    assert Path(imported.stdout.strip()).is_relative_to(tmp_path)
    demo = run(tmp_path / "venv/bin/collector", "demo", "-o", tmp_path / "demo.json", cwd=tmp_path)
    assert demo.returncode == 0, demo.stderr
    trace = (tmp_path / "demo.json").read_text()
    assert "/gpu:0/stream:7" in trace
    assert "/gpu:0/memcpy" in trace
    report = run(tmp_path / "venv/bin/collector", "report", tmp_path / "demo.json", "-o", "demo.html", cwd=tmp_path)
    assert report.returncode == 0, report.stderr
    assert "Content-Security-Policy" in (tmp_path / "demo.html").read_text("utf-8")
    served = run(tmp_path / "venv/bin/collector", "ui", "--no-browser", cwd=tmp_path)
    assert served.returncode == 2
    assert "cupti-collector[ui]" in served.stderr
