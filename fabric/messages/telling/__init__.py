"""Messages: errors, places in users' files, texts, JSON and whole files."""

from __future__ import annotations
