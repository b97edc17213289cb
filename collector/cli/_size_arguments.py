"""Arguments that are sizes."""

from __future__ import annotations

import argparse

from collector.text.sizes import bytes_of


def size_argument(text: str) -> int:
    """The bytes of a size such as 512MB."""
    try:
        return bytes_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
