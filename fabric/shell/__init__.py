"""The command line: commands, parameters and output."""

from __future__ import annotations
