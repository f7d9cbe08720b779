"""Text, tables and progress on terminals."""

from __future__ import annotations
