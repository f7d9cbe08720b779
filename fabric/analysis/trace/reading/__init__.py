"""The trace of a run, read into tables."""
