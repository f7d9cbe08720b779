"""Operators whose behaviour in time is known as a table, run in one compiled loop."""
