"""Print the requirements of pyproject.toml in the oldest version that each allows, for ``pip install``.

A bound of two numbers means the last patch of that version, because the first one has not always a wheel for this
Python. Packages that need a GPU or build wheels are left out.
"""

from __future__ import annotations

import sys
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_EXTRAS = ("arrow", "sql", "bench", "completion", "prompt", "ui", "test")


def oldest(text: str) -> str:
    """The requirement of the oldest version; ``""`` if its marker excludes this system."""
    requirement = Requirement(text)
    if requirement.marker is not None and not requirement.marker.evaluate():
        return ""
    (bound,) = (each.version for each in requirement.specifier if each.operator in (">=", "=="))
    numbers = bound.split(".")
    exact = bound if len(numbers) > 2 else ".".join([*numbers, "0"][:2]) + ".*"
    return f"{requirement.name}=={exact}"


def main() -> None:
    """Print each requirement once."""
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    lists = [project["dependencies"], *(project["optional-dependencies"][extra] for extra in _EXTRAS)]
    print(*dict.fromkeys(filter(None, map(oldest, chain(*lists)))), sep="\n")


if __name__ == "__main__":
    main()
