"""Shared parts of the studies of whole decoders: the models, their matching, claims, pictures."""

from __future__ import annotations
