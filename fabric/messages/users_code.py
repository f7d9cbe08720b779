"""Calls of users' code: exceptions of the code become errors, exceptions of signals do not.

Users' code may raise SystemExit, KeyboardInterrupt or any BaseException. Its calls are inside
``users_code``, or catch BaseException and convert it with ``raised``.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from fabric.messages.errors import FabricError, ProgramError, error_text

if TYPE_CHECKING:
    from fabric.messages.place import Place


class Interrupted(KeyboardInterrupt):
    """A signal (``number``) has ended the run."""

    def __init__(self, number: int = signal.SIGINT) -> None:
        super().__init__()
        self.number: Final = number


class Handler:
    """Base of objects with signal handlers, which raise ``Interrupted``, not KeyboardInterrupt."""


def pass_signals(error: BaseException) -> None:
    """Raise ``error`` again if a signal raised it."""
    if isinstance(error, Interrupted):
        raise error
    if (
        isinstance(error, KeyboardInterrupt)
        and threading.current_thread() is threading.main_thread()
        and callable(handler := signal.getsignal(signal.SIGINT))
        and not isinstance(getattr(handler, "__self__", None), Handler)
    ):
        raise error


def first_of(error: BaseException) -> BaseException:
    """Return the first error of a group, or the StopIteration that a coroutine converted."""
    while isinstance(error, BaseExceptionGroup):
        group, error = error, error.exceptions[0]
        if error.__traceback__ is None:
            error.__traceback__ = group.__traceback__
    cause = error.__cause__
    # If a coroutine raises one of these, Python raises a RuntimeError instead.
    if isinstance(error, RuntimeError) and isinstance(cause, StopIteration | StopAsyncIteration):
        return cause
    return error


def raised(
    called: str, error: BaseException, place: Place | None = None, when: str = ""
) -> FabricError:
    """Return the error for an exception of a user's code; a FabricError is returned as it is.

    Signals are raised again. The message begins with ``called`` and ends with ``when``.
    """
    pass_signals(error)
    # Imported only for errors, since it takes a while.
    from fabric.messages.place import raising_place

    file, line = raising_place(error) or place or (None, None)
    if not isinstance(error, FabricError):
        return ProgramError(f"{called} raised {error_text(error)}{when}", file=file, line=line)
    if error.file is None:
        error.file, error.line = file, line
    return error


@contextlib.contextmanager
def users_code(called: str, place: Place | None = None, when: str = "") -> Iterator[None]:
    """Wrap a call of a user's code: its exceptions become errors, as ``raised`` makes them."""
    try:
        yield
    except BaseException as error:
        failure = raised(called, error, place, when)
        if failure is error:
            raise
        raise failure from error


@contextlib.contextmanager
def users_values() -> Iterator[None]:
    """Convert exceptions that methods of users' values raise, such as ``__eq__``."""
    try:
        yield
    except BaseException as error:
        from fabric.messages.place import users_fault

        first = first_of(error)
        pass_signals(first)
        if isinstance(first, FabricError) or users_fault(first) is None:
            raise
        raise raised("a value that was given", first) from error
