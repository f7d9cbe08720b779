"""Pictures of programs: the operators, shapes on the streams between them, repeated parts once."""

from __future__ import annotations
