"""What samples say: intervals, ratios, verdicts."""
