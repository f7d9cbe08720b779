"""What a notebook shows: programs, streams, reports and traces as HTML in its theme."""

from __future__ import annotations
