"""The four ways to look at a model: by name scope, by graph, by op type, by code line."""
