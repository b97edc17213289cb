"""Files: written whole or not at all, unpacked within limits."""
