"""Text for display: terminal output, counts in sentences, paths without private parts."""
