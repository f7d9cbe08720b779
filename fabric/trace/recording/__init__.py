"""The recorder: what happens in a run, on its way to disk."""

from __future__ import annotations
