"""Shared parts of the studies of the paper's figures: numbers, claims, workloads, pictures."""
