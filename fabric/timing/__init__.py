"""Channels, clocks, units, memories and links, which decide cycles, and the log of a run."""
