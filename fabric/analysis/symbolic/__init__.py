"""What a program moves, holds and computes, as expressions of the sizes that data decide."""

from __future__ import annotations
