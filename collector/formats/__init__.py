"""File formats besides TensorFlow's own messages: formats for other viewers, and formats that are read back."""
