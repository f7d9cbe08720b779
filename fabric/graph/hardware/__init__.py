"""Descriptions of the hardware, and the files they are read from."""

from __future__ import annotations
