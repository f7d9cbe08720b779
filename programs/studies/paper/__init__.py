"""What the studies of the paper's figures share: published numbers, claims, workloads, pictures."""

from __future__ import annotations
