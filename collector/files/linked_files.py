"""Second names for files that never change."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file that never changes a second name, or copy it to another file system.

    Raises:
        FileNotFoundError: ``source`` does not exist.
        OSError: the file cannot be copied.
    """
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(source, target)
