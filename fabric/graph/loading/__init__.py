"""Users' files: executed, asked for what they define, and given parameters as text."""

from __future__ import annotations
