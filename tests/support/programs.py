"""Programs in separate files, which tests run in separate processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def results_of(script: str, *arguments: str) -> dict[str, Any]:
    """Run a script beside this file; its last line is its result as JSON. Without a GPU and with little output."""
    done = subprocess.run(
        [sys.executable, str(HERE / script), *arguments],
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    results: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return results
