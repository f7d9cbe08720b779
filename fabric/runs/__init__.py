"""One run of a program from its call to its report: options, verification, counters."""

from __future__ import annotations
