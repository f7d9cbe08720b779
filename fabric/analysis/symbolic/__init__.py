"""The traffic, memory and operations of a program, as expressions of data-dependent sizes."""

from __future__ import annotations
