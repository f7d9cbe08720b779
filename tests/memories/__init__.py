"""Compares models of off-chip memory with independent models and published measurements."""
