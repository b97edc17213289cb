"""Arguments that are sizes."""

from __future__ import annotations

import argparse

from collector.options import LEAST_RING_BYTES
from collector.text.quantities import bytes_of


def size_argument(text: str) -> int:
    """The bytes of a size such as 512MB."""
    try:
        return bytes_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def ring_size_argument(text: str) -> int:
    """The bytes of a size such as 512MB, the disk space for the latest records."""
    num_bytes = size_argument(text)
    if num_bytes < LEAST_RING_BYTES:
        raise argparse.ArgumentTypeError(f"{text!r} is too small: at least {LEAST_RING_BYTES >> 10} KiB are kept")
    return num_bytes
