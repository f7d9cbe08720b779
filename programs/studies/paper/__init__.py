"""Shared parts of the studies of the paper's figures: numbers, claims, workloads, pictures."""

from __future__ import annotations
