"""Statistics of samples: intervals, ratios, verdicts."""
