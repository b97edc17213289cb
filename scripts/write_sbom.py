"""Write the bill of materials of the distributions: what of others is shipped inside, with versions and licences.

    write_sbom.py OUT.cdx.json [NAME=VERSION ...]

CycloneDX 1.6, as JSON. What the page of reports contains is read from its LICENSES.txt; what is compiled into the
libraries from the first lines of native/licenses. NAME=VERSION states the version of one of the latter.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_PACKAGE = re.compile(r"^(?P<name>@?[\w./-]+) (?P<version>\d[\w.+-]*) \((?P<license>[^)]+)\)$", re.MULTILINE)
_COMPILED = re.compile(r"^(?P<title>[^(]+) \((?P<license>[^)]+)\): ")


def components(versions: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The parts of others, sorted by where they are and by name."""
    listed = (ROOT / "collector/web/assets/LICENSES.txt").read_text(encoding="utf-8")
    for found in sorted(_PACKAGE.finditer(listed), key=lambda each: each["name"]):
        yield {
            "type": "library",
            "name": found["name"],
            "version": found["version"],
            "purl": f"pkg:npm/{found['name'].replace('@', '%40')}@{found['version']}",
            "licenses": [{"expression": found["license"]}],
        }
    for path in sorted((ROOT / "native/licenses").glob("*.txt")):
        found = _COMPILED.match(path.read_text(encoding="utf-8"))
        if found is None:
            raise SystemExit(f"the first line of {path} has not the form `NAME (LICENSE): where it is`")
        component = {"type": "library", "name": path.stem, "description": found["title"]}
        if path.stem in versions:
            component["version"] = versions[path.stem]
        yield {**component, "licenses": [{"expression": found["license"]}]}


def bill(version: str, versions: Mapping[str, str]) -> dict[str, Any]:
    """The document for this version of the package."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "name": "cupti-collector",
                "version": version,
                "purl": f"pkg:pypi/cupti-collector@{version}",
                "licenses": [{"expression": "Apache-2.0"}],
            }
        },
        "components": list(components(versions)),
    }


def package_version() -> str:
    """The version that pyproject.toml states, which is the only place that does."""
    found = re.search(r'^version = "([^"]+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise SystemExit("pyproject.toml states no version")
    return found[1]


def main(argv: Sequence[str]) -> int:
    """Write the file."""
    if not argv:
        raise SystemExit((__doc__ or "").strip())
    versions = dict(word.split("=", 1) for word in argv[1:])
    text = json.dumps(bill(package_version(), versions), indent=2)
    Path(argv[0]).write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
