"""The step that `collector demo` traces."""
