"""Depths of channels that keep limits of cycles."""

from __future__ import annotations
