"""A Recording as TensorFlow's StepStats, and StepStats as wire bytes."""
