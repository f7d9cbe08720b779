"""Studies: many runs of one program, and the front of its best designs."""
