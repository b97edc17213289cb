"""Where time, memory, parameters and flops go: by name scope, by graph, by op type, by code line."""
