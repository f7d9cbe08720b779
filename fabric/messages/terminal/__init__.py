"""What is printed on terminals: text, tables, progress."""

from __future__ import annotations
