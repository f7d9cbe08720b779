"""Events as lines of JSON: the run log and the trace's export write them alike."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, TextIO

import structlog

__all__ = ["event_logger"]


def event_logger(file: TextIO) -> Any:
    """Return a logger that writes events into ``file``, one JSON object a line."""
    return structlog.wrap_logger(
        structlog.WriteLogger(file),
        processors=[_event_first, structlog.processors.JSONRenderer(sort_keys=False)],
        wrapper_class=structlog.BoundLogger,
        cache_logger_on_first_use=True,
    )


def _event_first(_logger: Any, _method: str, line: MutableMapping[str, Any]) -> dict[str, Any]:
    return {"event": line.pop("event"), **line}
