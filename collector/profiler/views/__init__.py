"""The views of a model, one module each, and what they are made of."""
