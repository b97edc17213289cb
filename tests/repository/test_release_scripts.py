"""The scripts of a release: what check_release.py finds, the bill of materials, what a built wheel has to be."""

from __future__ import annotations

import json
import struct
import subprocess
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MEMBERS = ("collector/_native.cpython-312-aarch64-linux-gnu.so", "collector/_convert.cpython-312-aarch64-linux-gnu.so")
NAME = "cupti_collector-0.1.0-cp312-cp312-manylinux_2_28_aarch64.whl"
METADATA = """
requires-python = ">=3.10"
classifiers = ["Programming Language :: Python :: 3.10", "Programming Language :: Python :: 3.11"]
[project.urls]
"""


@pytest.fixture
def scripts(root, monkeypatch):
    monkeypatch.syspath_prepend(str(root / "scripts"))


@pytest.fixture
def release(tmp_path, scripts):
    """A checkout in which nothing is missing for version 1.2.0, and a function that makes changes and commits them."""

    def commit(**files):
        for name, text in files.items():
            (tmp_path / {"changelog": "CHANGELOG.md", "metadata": "pyproject.toml"}[name]).write_text(text)
        identity = ("-c", "user.name=name", "-c", "user.email=name@example.com")
        subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
        subprocess.run(["git", *identity, "commit", "-qm", "Change"], cwd=tmp_path, check=True)

    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    commit(changelog="## Unreleased\n\n## 1.2.0 - 2026-11-23\n\n## 1.1.0 - 2026-10-01\n", metadata=METADATA)
    return tmp_path, commit


def findings(root):
    from check_release import findings

    return list(findings(root, "1.2.0"))


def test_nothing_is_missing(release):
    assert findings(release[0]) == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"changelog": "## Unreleased\n"}, "CHANGELOG.md has no entry `## 1.2.0 - YYYY-MM-DD` at its top: it has none"),
        ({"changelog": "## 1.1.0 - 2026-10-01\n## 1.2.0 - 2026-11-23\n"}, "at its top: the newest is 1.1.0"),
        ({"metadata": METADATA.replace("[project.urls]", "")}, "pyproject.toml has no [project.urls]"),
        ({"metadata": METADATA.replace("3.11", "3.12")}, "do not list each Python from requires-python on"),
        ({"metadata": METADATA.replace(">=3.10", ">=3.9")}, "do not list each Python from requires-python on"),
    ],
)
def test_one_thing_is_missing(release, change, found):
    folder, commit = release
    commit(**change)
    (line,) = findings(folder)
    assert found in line


def test_changes_and_a_used_tag_are_found(release):
    folder, _ = release
    (folder / "new.txt").touch()
    subprocess.run(["git", "tag", "v1.2.0"], cwd=folder, check=True)
    changes, tag = findings(folder)
    assert changes == "the checkout has changes that are not committed"
    assert tag == "the tag v1.2.0 exists already"


def test_the_bill_of_materials_names_what_of_others_is_shipped(root, scripts, tmp_path):
    import write_sbom

    write_sbom.main([str(tmp_path / "bill.cdx.json"), "gcc=12.2.0"])
    bill = json.loads((tmp_path / "bill.cdx.json").read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["version"] == write_sbom.package_version()
    listed = {part["name"]: part for part in bill["components"]}
    compiled = {path.stem for path in (root / "native/licenses").glob("*.txt")}
    packages = json.loads((root / "web/package.json").read_text())["dependencies"]
    assert listed.keys() >= compiled | packages.keys()
    assert listed["gcc"]["version"] == "12.2.0"
    assert "version" not in listed["llvm"]
    assert all(part["licenses"][0]["expression"] for part in bill["components"])


@pytest.fixture
def wheel(scripts, tmp_path):
    """Make a file of this name with these members, libraries for the machine, and check it."""
    from build_wheels import Wheel, check_libraries

    def check(name=NAME, members=MEMBERS, machine=183, text=b""):
        header = b"\x7fELF" + bytes(14) + struct.pack("<H", machine) + text
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for member in members:
                archive.writestr(member, header)
        check_libraries(Wheel("3.12", "aarch64", None, tmp_path / name))

    return check


def test_a_wheel_of_its_architecture_passes(wheel):
    wheel()


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"machine": 62}, "is not a library or program for aarch64 .ELF machine 62."),
        ({"members": [name.replace("aarch64", "x86_64") for name in MEMBERS]}, "_native, which cp312 cannot import"),
        ({"members": MEMBERS[:1]}, "holds no _convert, which cp312 cannot import"),
        ({"name": NAME.replace("cp312", "cp311")}, "has not the tag of cp312 on aarch64"),
        ({"name": NAME.replace("aarch64", "x86_64")}, "has not the tag of cp312 on aarch64"),
        ({"members": ["collector/program", *MEMBERS], "machine": 62}, "program in .* is not a library or program for"),
        ({"text": f"{ROOT}/native/a.cpp".encode()}, "names the folder of the build, so that no two builds are equal"),
    ],
)
def test_a_wheel_that_a_cross_build_spoiled_is_refused(wheel, change, cause):
    from build_wheels import StepError

    with pytest.raises(StepError, match=cause):
        wheel(**change)


@pytest.mark.parametrize(("tag", "is_right"), [("2_28", True), ("2_24", True), ("2_31", False), ("2_34.linux", False)])
def test_a_wheel_runs_with_the_c_library_that_it_was_built_against(scripts, tmp_path, tag, is_right):
    from build_wheels import StepError, Wheel, check_platform

    wheel = Wheel("3.12", "aarch64", None, tmp_path / NAME.replace("2_28", tag))
    if is_right:
        check_platform(wheel)
    else:
        with pytest.raises(StepError, match=r"is not for every Linux with glibc 2\.28"):
            check_platform(wheel)


@pytest.mark.parametrize(
    ("arguments", "there", "status"),
    [
        ([], ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15"), 0),
        ([], ("3.10", "3.11", "3.12", "3.13"), 1),
        ([], ("3.11",), 1),
        (["--python", "3.11"], ("3.11",), 0),
        (["--python", "3.11", "--python", "3.12"], ("3.11",), 1),
        (["--check-only"], ("3.11",), 1),
    ],
)
def test_a_missing_cpython_is_an_error_unless_it_was_left_out(
    scripts, monkeypatch, tmp_path, capsys, arguments, there, status
):
    import build_wheels

    monkeypatch.setattr(build_wheels, "source_date_epoch", lambda: "0")
    monkeypatch.setattr(build_wheels, "gnu_library", lambda *_: None)
    monkeypatch.setattr(build_wheels, "build_sdist", lambda *_: (tmp_path / "a.tar.gz", tmp_path))
    monkeypatch.setattr(build_wheels, "run", lambda *_, **__: "")
    monkeypatch.setattr(build_wheels, "write_bill", lambda *_: None)
    monkeypatch.setattr(build_wheels, "make", lambda *_, **__: None)
    monkeypatch.setattr(build_wheels, "interpreter", lambda version: Path("python") if version in there else None)
    assert build_wheels.main([str(tmp_path / "out"), *arguments]) == status
    assert ("NO WHEELS FOR CPYTHON" in capsys.readouterr().err) == bool(status)
