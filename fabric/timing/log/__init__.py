"""The log of a run: what units that are tasks did, as rows of integers, and the states it makes."""

from __future__ import annotations
