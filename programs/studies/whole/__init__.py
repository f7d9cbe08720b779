"""What the studies of whole language models share: their parts, and what these add up to."""

from __future__ import annotations
