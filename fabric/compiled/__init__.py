"""Operators whose behaviour in time is a table, run without Python in between."""
