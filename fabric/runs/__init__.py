"""One run of a program from its call to its report: log, verification, counters."""

from __future__ import annotations
