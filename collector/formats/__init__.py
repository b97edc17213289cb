"""File formats besides TensorFlow's own messages: what others' viewers read, and what we read back."""
