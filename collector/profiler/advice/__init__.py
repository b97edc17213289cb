"""Advice: tfprof's own checkers, and those of recorded steps."""
