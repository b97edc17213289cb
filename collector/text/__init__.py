"""Text for people: what a terminal may print, counts in sentences, paths without private parts."""
