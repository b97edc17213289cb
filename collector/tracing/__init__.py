"""Tracing a program: where users start."""
