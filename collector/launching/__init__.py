"""Programs that the collector launches or attaches to: their environment, their end, the files of their processes."""
