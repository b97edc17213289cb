"""Files: written completely or not at all, decompressed within limits."""
