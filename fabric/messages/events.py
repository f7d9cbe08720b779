"""Loggers of structlog, with the fabric's processors or the user's.

The global configuration of structlog is neither read nor changed.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, TextIO, TypeAlias

import structlog
from structlog.typing import BindableLogger, Processor

from fabric.messages.errors import ConfigurationError, error_text
from fabric.messages.place import calling_place
from fabric.messages.text import found_text
from fabric.messages.users_code import pass_signals, users_code
from fabric.messages.vocabulary import LEVELS

if TYPE_CHECKING:
    from structlog.typing import EventDict

Log: TypeAlias = BindableLogger | Iterable[Processor]
"""A logger of structlog, or its processors."""


def _named_first(_logger: object, _method: str, line: EventDict) -> EventDict:
    return {"event": line.pop("event"), "level": line.pop("level"), **line}


_JSON: Final[tuple[Processor, ...]] = (
    structlog.processors.add_log_level,
    _named_first,
    structlog.processors.JSONRenderer(),
)


def line_logger(
    file: TextIO, processors: Iterable[Processor] = _JSON, *, level: str = "notset"
) -> BindableLogger:
    """Return a logger that writes a flushed line for each event, by default a JSON object."""
    logger: BindableLogger = structlog.wrap_logger(
        structlog.WriteLogger(file),
        processors=list(processors),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        context_class=dict,
    )
    return logger


def logger_of(log: Log, caller: str, run: str) -> BindableLogger:
    """Return the logger or the processors of a user as a logger bound to ``run``.

    The output of processors is written to standard error. Errors name the function ``caller``.
    """
    fault = ": expected a logger of structlog, or a list of its processors"
    if isinstance(log, BindableLogger) and not isinstance(log, type):
        try:
            bound = log.bind(run=run)
        except BaseException as error:  # noqa: BLE001 - whatever the user's code raises
            pass_signals(error)
            fault = f", and its bind() raised {error_text(error)}"
        else:
            if not inspect.iscoroutinefunction(getattr(bound, "info", None)):
                return bound
            fault = " with methods that are awaited: expected methods that are called"
    elif isinstance(log, list | tuple) and log and all(map(callable, log)):
        return line_logger(sys.stderr, log).bind(run=run)
    file, line = calling_place()
    raise ConfigurationError(f"{caller}: log is {found_text(log)}{fault}", file=file, line=line)


def log_event(logger: BindableLogger, event: str, fields: Mapping[str, object]) -> None:
    method: Callable[..., object] = getattr(logger, LEVELS.get(event, "debug"))
    method(event, **fields)


def log_for_user(logger: BindableLogger, event: str, fields: Mapping[str, object]) -> None:
    """Log an event with the logger of a user; its processors may drop it."""
    with users_code("log", when=f", at event {event} of cycle {fields['cycle']}"):
        log_event(logger, event, fields)
