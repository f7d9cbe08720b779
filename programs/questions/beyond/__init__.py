"""Shared parts of the studies of programs beyond the paper."""

from __future__ import annotations
