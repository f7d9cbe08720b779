"""Runs that take long: off by default."""
