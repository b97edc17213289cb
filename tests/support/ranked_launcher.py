"""Starts a program as several ranks, as torchrun does: `ranked_launcher.py RANKS PROGRAM [ARGUMENT ...]`."""

from __future__ import annotations

import os
import subprocess
import sys

count, command = int(sys.argv[1]), sys.argv[2:]
ranks = [
    subprocess.Popen(command, env=os.environ | {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count)})
    for rank in range(count)
]
sys.exit(max(rank.wait() for rank in ranks))
