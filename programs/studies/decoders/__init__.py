"""Shared parts of the studies of whole decoders: the models, their matching, claims, pictures."""
