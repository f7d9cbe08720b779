"""What a step of a server costs: tables that somebody has measured, or runs of a program."""

from __future__ import annotations
