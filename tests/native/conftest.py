"""The modules that only these tests import, and the simulator's library where the package was not built."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
