"""How what a server did is told: on a terminal, in pictures, on a page."""

from __future__ import annotations
