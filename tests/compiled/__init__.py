"""Operators that are compiled do what they do as tasks."""
