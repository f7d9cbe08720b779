"""Loops of a model: a body that computes all steps in one tensor, and states between steps."""
