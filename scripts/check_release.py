"""Say what is missing before this checkout can be released as the version that pyproject.toml states.

Prints one line for each finding and ends with 1 if there is any; changes nothing.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from write_sbom import ROOT, package_version

_ENTRY = re.compile(r"^## (?P<version>\d[^\s]*) - (?P<date>\d{4}-\d\d-\d\d)$", re.MULTILINE)


def _git(*arguments: str, root: Path) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout


def findings(root: Path = ROOT, version: str | None = None) -> Iterator[str]:
    """What is missing, one sentence each."""
    version = version or package_version()
    metadata = (root / "pyproject.toml").read_text(encoding="utf-8")
    entries = [found["version"] for found in _ENTRY.finditer((root / "CHANGELOG.md").read_text(encoding="utf-8"))]
    if entries[:1] != [version]:
        newest = f"the newest is {entries[0]}" if entries else "it has none"
        yield f"CHANGELOG.md has no entry `## {version} - YYYY-MM-DD` at its top: {newest}"
    if "[project.urls]" not in metadata:
        yield "pyproject.toml has no [project.urls]: state where source, documentation and issues are"
    minimum = re.search(r'^requires-python = ">=3\.(\d+)"$', metadata, re.MULTILINE)
    stated = sorted(int(minor) for minor in re.findall(r'"Programming Language :: Python :: 3\.(\d+)"', metadata))
    if minimum is None or stated != list(range(int(minimum[1]), int(minimum[1]) + len(stated))) or not stated:
        yield "the classifiers of pyproject.toml do not list each Python from requires-python on"
    if _git("status", "--porcelain", root=root):
        yield "the checkout has changes that are not committed"
    if _git("tag", "--list", f"v{version}", root=root):
        yield f"the tag v{version} exists already"


def main() -> int:
    """Print the findings."""
    found = list(findings())
    for line in found:
        print(line)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
