"""Shared parts of the studies of whole language models: the parts of a model, and their sums."""
