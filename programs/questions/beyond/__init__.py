"""What the studies of programs that the paper leaves open share."""

from __future__ import annotations
