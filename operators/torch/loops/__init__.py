"""Loops of a model: a body with one tensor for all steps, and states carried between steps."""
