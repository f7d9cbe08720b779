"""What decides cycles: channels, clock, units, memories, links, and the log of a run."""
