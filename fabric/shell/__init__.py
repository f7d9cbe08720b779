"""The command line: its commands, their parameters, and what they print."""

from __future__ import annotations
