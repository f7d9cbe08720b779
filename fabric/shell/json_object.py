"""Print the one JSON object of a command with ``--json`` on standard output.

Every object has ``status`` and ``error``. ``error`` is null, or has ``message``, ``file`` and
``line``. If a command fails, its object also has the fields that were set before.
"""

from __future__ import annotations

from typing import Final

from fabric.messages.output import print_text
from fabric.messages.text import json_text
from fabric.timing.machine.terminations import uninterrupted

_objects: Final[list[str]] = []
"""The object printed since the last call of ``allow_one_object``."""


def allow_one_object() -> None:
    """Allow ``print_json`` to print its next object; later objects are dropped."""
    _objects.clear()


def print_json(value: dict[str, object]) -> None:
    """Print a JSON object.

    Signals are deferred until the object is printed; a second signal ends the command.
    """
    text = json_text(value)
    if not _objects:
        _objects.append(text)
        with uninterrupted(second_ends=True):
            print_text(text)
