"""What ``trace`` prints: the results of the analyses as tables and sentences."""

from __future__ import annotations
