"""Execution of users' files, with parameters as text."""

from __future__ import annotations
