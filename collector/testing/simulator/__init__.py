"""The simulated GPU, driven from Python."""
