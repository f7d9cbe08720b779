"""Analyses of a trace: cycles by cause, roots of waits, bounds of the run."""
