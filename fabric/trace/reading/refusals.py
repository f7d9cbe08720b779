"""What a trace refuses, with the line that asks for it."""

from __future__ import annotations

from fabric.telling.errors import ConfigurationError
from fabric.telling.place import calling_place, is_installed

__all__ = ["refused"]


def refused(message: str) -> ConfigurationError:
    """Return the error that says ``message``.

    It points at the user's line that asks; where the command line asks, there is none.
    """
    file, line = calling_place()
    if is_installed(file):
        return ConfigurationError(message)
    return ConfigurationError(message, file=file, line=line)
