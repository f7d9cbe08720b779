"""What users' calls are given, compared with the annotations of what they call."""

from __future__ import annotations
