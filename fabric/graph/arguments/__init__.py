"""Checks of arguments against annotations."""

from __future__ import annotations
