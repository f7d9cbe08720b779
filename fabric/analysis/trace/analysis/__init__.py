"""What a trace tells: where cycles went, for whom units waited, what bounds the run."""

from __future__ import annotations
