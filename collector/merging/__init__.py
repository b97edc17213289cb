"""Many steps and many ranks in one trace."""
