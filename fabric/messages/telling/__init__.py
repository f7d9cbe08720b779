"""How things are said to people: errors, places in their files, words, JSON and whole files."""

from __future__ import annotations
