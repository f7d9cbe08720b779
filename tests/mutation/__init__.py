"""Mutation testing: whether the tests notice when a line of the package says something else."""
