"""The page that shows steps: its data, and the file that holds both."""
