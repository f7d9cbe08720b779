"""Lengths that data decide."""
