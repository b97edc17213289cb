"""What to look at first: tfprof's own checkers, and those that a recorded step makes possible."""
