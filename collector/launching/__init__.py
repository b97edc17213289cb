"""Programs that are launched with the collector in them: their environment, their end, the files of their processes."""
