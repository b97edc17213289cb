"""The page that shows steps: what it is given, and the file that holds both."""
