"""Flows between units over shared links, and their fair shares."""

from __future__ import annotations
