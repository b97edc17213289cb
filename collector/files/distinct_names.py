"""Names of several files, which differ where the files do."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def distinct_names(names: Sequence[str], paths: Sequence[Path]) -> list[str]:
    """The names, each with as many folders of its path before it as tell it from equal names of other paths.

    Args:
        names: a name for each path: the path itself, or its last parts.
        paths: the paths.
    """
    found = list(names)
    num_folders = 0
    while shared := _shared(found, paths):
        num_folders += 1
        longer = {place: _last_parts(paths[place], len(PurePath(names[place]).parts) + num_folders) for place in shared}
        if all(found[place] == name for place, name in longer.items()):
            break
        for place, name in longer.items():
            found[place] = name
    return found


def _shared(names: Sequence[str], paths: Sequence[Path]) -> list[int]:
    """The places of the names that several paths have."""
    places = defaultdict(list)
    for place, name in enumerate(names):
        places[name].append(place)
    groups = [each for each in places.values() if len(each) > 1 and len({_whole(paths[place]) for place in each}) > 1]
    return [place for each in groups for place in each]


def _last_parts(path: Path, count: int) -> str:
    return "/".join(Path(_whole(path)).parts[1:][-count:])


def _whole(path: Path) -> str:
    return os.path.abspath(path)  # noqa: PTH100 - `Path.absolute` keeps `..`
