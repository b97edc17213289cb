"""The Python process that this package runs in: its interpreters, its garbage collector, its native modules."""
