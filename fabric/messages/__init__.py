"""Errors, places, words and tables."""
