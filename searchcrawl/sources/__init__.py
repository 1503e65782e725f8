"""Configuration files as values. Read in the main thread before anything begins; the values are of any thread."""
