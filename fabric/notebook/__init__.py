"""Programs, streams, reports and traces as HTML in the theme of a notebook."""

from __future__ import annotations
