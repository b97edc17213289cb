"""Slow, readable twins of native code, which tests compare with it."""
