"""Operators, streams and programs: from calls in a user's file to a plan of nodes and edges."""

from __future__ import annotations
