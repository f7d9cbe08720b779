"""The one JSON object on standard output that a command with ``--json`` ends with."""

from __future__ import annotations

from typing import Final

from fabric.machine.terminations import uninterrupted
from fabric.telling.plain import json_text
from fabric.terminal.output import print_text

__all__ = ["one_object", "print_json"]

_objects: Final[list[str]] = []
"""What was printed since ``one_object`` was called last."""


def one_object() -> None:
    """Let the next JSON object be printed, and none after it."""
    _objects.clear()


def print_json(value: dict[str, object]) -> None:
    """Print one JSON object; what goes wrong once there is one is told on standard error only.

    It is printed whole before a signal is heard. Who reads it may never do so: a second signal ends
    the command at once.
    """
    text = json_text(value)
    if not _objects:
        _objects.append(text)
        with uninterrupted(second_ends=True):
            print_text(text)
