"""Loops of a model: one body, all of whose steps are one tensor each, and what goes round."""
