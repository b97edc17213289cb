"""Build the package for aarch64 and try it under qemu's user emulation.

    try_aarch64.py                build, demo, native tests, NVIDIA's own libcupti
    try_aarch64.py --tests PATH   these tests instead of the native ones
    try_aarch64.py --wheel FILE   this wheel, such as `make dist` built one, instead of a build by Debian's compiler

Debian's cross compiler builds a wheel, with warnings as errors. It is unpacked into a root folder of Debian's arm64
packages, whose Python qemu runs: the demo, the native tests, and a walk over NVIDIA's own records with its libcupti for
aarch64. Nothing is installed on this machine. Emulation on x86-64 tests neither speed nor weak memory ordering, and its
pages have 4 KiB.

Skips loudly, with status 0, where the programs for it are missing (Debian: apt install qemu-user-static mmdebstrap
g++-aarch64-linux-gnu). Prints a table; ends with 1 if anything failed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import cuda_wheels
from build_wheels import (
    ROOT,
    StepError,
    Wheel,
    build_environment,
    check_libraries,
    copy_without_package,
    interpreter,
    run,
)

BUILD = ROOT / "build" / "aarch64"
SYSTEM = BUILD / "root"
VERSION = "3.11"
"""The Python of the Debian release whose packages are the root."""
PACKAGES = "python3.11,libpython3.11,libpython3.11-stdlib,libstdc++6,libc6,libc6-dev,zlib1g,binutils"
NEEDED = {
    "qemu-aarch64-static": "qemu-user-static",
    "mmdebstrap": "mmdebstrap",
    "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
}
"""Program -> Debian's package of it."""
WHEELS = ("numpy", "protobuf", "rich", "rich-argparse", "pytest>=8", "pytest-timeout", "pytest-xdist", "nvtx")
NATIVE_TESTS = (
    "tests/capture",
    "tests/cupti/test_library.py",
    "tests/testing/simulator",
    "tests/tracing",
    "tests/nvtx",
    "tests/inject",
)
NOT_EMULATED = (
    "tests/tracing/test_annotation_stack.py::test_a_path_for_which_there_is_no_memory_is_an_error",
    "tests/capture/test_out_of_memory.py::test_without_a_thread_there_is_a_cause_and_the_programs_signals_are_left_alone",
    "tests/capture/test_buffers.py::test_other_buffer_options_at_every_session_leave_nothing_behind",
)
"""Tests of limits of memory and threads, which the emulator ignores, and of memory, to which it adds its own."""
MARKS = "not (viewer or slow or gpu)"
WALKED = ("12.3", "12.4", "12.6", "12.8", "12.9", "13.0", "13.1")
"""The CUDA versions whose libcupti steps over records without a driver, as far as it exists for aarch64."""


def mirror() -> tuple[str, str]:
    """The address and the release of the Debian packages that this machine's apt uses."""
    listed = run("apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)", "Created-By: Packages")
    for line in listed.splitlines():
        address, release, component = line.split()
        if component == "main" and "-" not in release:
            return address, release
    raise StepError("apt knows no main section of a Debian release")


def make_root() -> str:
    """Unpack Debian's packages for arm64 and the wheels that the package and its tests need."""
    if not (SYSTEM / "usr/bin/python3.11").exists():
        shutil.rmtree(SYSTEM, ignore_errors=True)
        SYSTEM.parent.mkdir(parents=True, exist_ok=True)
        address, release = mirror()
        run("mmdebstrap", "--arch=arm64", "--variant=extract", f"--include={PACKAGES}", release, SYSTEM, address)
    wheels = BUILD / "wheels"
    if not wheels.exists():
        run(
            sys.executable, "-m", "pip", "download", "--quiet", "--only-binary", ":all:", "--implementation", "cp",
            *(f"--platform=manylinux{glibc}_aarch64" for glibc in ("_2_28", "_2_17", "2014")),
            "--python-version", VERSION, "--abi", "cp311", "--abi", "abi3", "--abi", "none", "-d", wheels, *WHEELS,
        )  # fmt: skip
    for wheel in wheels.glob("*.whl"):
        install(wheel)
    return f"{len(list(wheels.glob('*.whl')))} wheels beside Debian's packages"


def install(wheel: Path) -> None:
    """Unpack a wheel into the root, with the mode of its programs."""
    folder = SYSTEM / "usr/local/lib/python3.11/dist-packages"
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            path = Path(archive.extract(entry, folder))
            if entry.external_attr >> 16 & 0o111:
                path.chmod(path.stat().st_mode | 0o111)


def install_checked(path: Path) -> str:
    """Check the architecture of the libraries of a wheel, and install it."""
    if not path.is_file():
        raise StepError(f"{path} does not exist")
    check_libraries(Wheel(VERSION, "aarch64", None, path))
    install(path)
    emulate(SYSTEM / "usr/local/lib/python3.11/dist-packages/collector/cupti_trial")
    return path.name


def build() -> str:
    """Build the wheel with warnings as errors, check and install it."""
    host = interpreter(VERSION)
    if host is None:
        raise StepError(f"a cross build needs the headers of Python {VERSION}, and there is no python{VERSION} here")
    wheel = Wheel(VERSION, "aarch64", host)
    python = build_environment(host, BUILD / "env")
    out = BUILD / "out"
    shutil.rmtree(out, ignore_errors=True)
    run(
        python, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", out,
        "-C", f"build-dir={BUILD}/build",
        "-C", "cmake.define.COLLECTOR_WERROR=ON",
        "-C", f"cmake.define.PYTHON_MODULE_EXTENSION={wheel.module_suffix}",
        "-C", "cmake.define.PYTHON_MODULE_DEBUG_POSTFIX=",
        ROOT,
        CMAKE_TOOLCHAIN_FILE=str(ROOT / "scripts" / "aarch64_toolchain.cmake"),
        _PYTHON_HOST_PLATFORM="linux-aarch64",
        CCACHE_BASEDIR=str(ROOT), CCACHE_NOHASHDIR="1",
        **({"CMAKE_CXX_COMPILER_LAUNCHER": "ccache"} if shutil.which("ccache") else {}),
    )  # fmt: skip
    (built,) = out.glob("*.whl")
    return install_checked(built)


def emulate(program: Path) -> None:
    """Let a program of the package be started like one of this machine, which its kernel could not run."""
    original = program.with_name(f"{program.name}.aarch64")
    program.rename(original)
    program.write_text(f'#!/bin/sh\nexec qemu-aarch64-static -L "{SYSTEM}" "{original}" "$@"\n', encoding="utf-8")
    program.chmod(0o755)


def write_programs() -> Path:
    """A folder of programs: Python under qemu, which starts itself again by its own path, and aarch64's compilers."""
    folder = BUILD / "bin"
    folder.mkdir(parents=True, exist_ok=True)
    qemu = f'exec qemu-aarch64-static -L "{SYSTEM}" -0 "{folder}/python3" "{SYSTEM}/usr/bin/python3.11" "$@"'
    programs = {
        "python3": f'export PYTHONHOME="{SYSTEM}/usr"\n{qemu}',
        **{name: f'exec aarch64-linux-gnu-{tool} "$@"' for name, tool in
           (("cc", "gcc"), ("gcc", "gcc"), ("c++", "g++"), ("g++", "g++"), ("readelf", "readelf"), ("nm", "nm"))},
    }  # fmt: skip
    for name, command in programs.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{command}\n", encoding="utf-8")
        path.chmod(0o755)
    return folder


def emulated(*arguments: str | Path, cwd: Path) -> str:
    """Run the emulated Python."""
    programs = write_programs()
    return run(
        programs / "python3", *arguments, cwd=cwd, PATH=f"{programs}{os.pathsep}{os.environ['PATH']}",
        COLLECTOR_SHARED=os.environ.get("COLLECTOR_SHARED", str(ROOT.parent / "shared")),
    )  # fmt: skip


def demo() -> str:
    """Trace the demo on the simulated GPU."""
    with tempfile.TemporaryDirectory() as folder:
        emulated("-m", "collector", "demo", "--simulate", "-o", "demo.json", cwd=Path(folder))
        machine = emulated("-c", "import platform; print(platform.machine())", cwd=Path(folder)).strip()
        size = (Path(folder) / "demo.json").stat().st_size
    return f"on {machine}, {size} bytes"


def native_tests(tests: Sequence[str]) -> str:
    """Run tests of the native code; return pytest's last line."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        copy_without_package(tree)
        with contextlib.suppress(cuda_wheels.WheelMissingError):  # the emulated Python has no pip
            cuda_wheels.cupy_nvtx("aarch64")
        printed = emulated(
            "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", str(os.cpu_count()), "--dist", "loadfile",
            "-m", MARKS, *(f"--deselect={name}" for name in NOT_EMULATED), *tests, cwd=tree,
        )  # fmt: skip
    return printed.strip().splitlines()[-1].strip("= ")


def walk_records() -> str:
    """Compare NVIDIA's own libcupti for aarch64 with ours, record by record, for each version that can be had."""
    walked, absent = [], []
    with tempfile.TemporaryDirectory() as folder:
        for cuda in WALKED:
            try:
                libcupti = cuda_wheels.libcupti(cuda, "aarch64")
            except cuda_wheels.WheelMissingError:
                absent.append(cuda)
                continue
            library = Path(folder) / f"librecords-{cuda}.so"
            source = ROOT / "tests" / "cupti" / "nvidia_records.cpp"
            try:
                cuda_wheels.build_records_library(cuda, source, library, "aarch64-linux-gnu-g++")
            except subprocess.CalledProcessError as error:
                raise StepError(error.stderr) from None
            major, minor = map(int, cuda.split("."))
            script = ROOT / "tests" / "cupti" / "compare_with_libcupti.py"
            emulated(script, library, libcupti, str(major * 1000 + minor * 10), cwd=Path(folder))
            walked.append(cuda)
    if not walked:
        raise StepError(f"no libcupti for aarch64 could be downloaded (of {', '.join(WALKED)})")
    return f"equal for {', '.join(walked)}" + (f"; not to be had: {', '.join(absent)}" if absent else "")


def main(argv: Sequence[str] | None = None) -> int:
    """Run every step; print the table."""
    description, _, details = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=description, epilog=details, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--wheel", type=Path, metavar="FILE", help=f"a wheel for CPython {VERSION} on aarch64")
    parser.add_argument("--tests", nargs="+", default=NATIVE_TESTS, metavar="PATH", help="the tests to run")
    args = parser.parse_args(argv)
    missing = {program: package for program, package in NEEDED.items() if not shutil.which(program)}
    if missing:
        remedy = f"on Debian: apt install {' '.join(missing.values())}"
        print(f"!!! NOTHING WAS TRIED ON AARCH64: no {', '.join(missing)} here ({remedy})", file=sys.stderr)
        return 0
    steps: list[tuple[str, Callable[[], str]]] = [
        ("root of arm64 packages", make_root),
        ("wheel", build if args.wheel is None else lambda: install_checked(args.wheel)),
        ("demo", demo),
        ("native tests", lambda: native_tests(args.tests)),
        ("NVIDIA's libcupti", walk_records),
    ]
    rows, failed = [], False
    for title, step in steps:
        begin = time.monotonic()
        try:
            outcome = step()
        except StepError as error:
            print(f"{title}: {error}", file=sys.stderr)
            outcome, failed = "FAILED", True
        rows.append(f"| {title} | {re.sub(r'[|]', '/', outcome)} | {time.monotonic() - begin:.0f} s |")
        print(rows[-1], flush=True)
        if failed and title in ("root of arm64 packages", "wheel"):
            break
    print("\n| aarch64 under qemu | outcome | time |\n| --- | --- | --- |")
    print("\n".join(rows))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
