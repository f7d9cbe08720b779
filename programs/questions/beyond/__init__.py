"""Shared parts of the studies of programs beyond the paper."""
