"""Errors for users: the operator, the fault, the expected value and the place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.messages.addresses import without_passwords
from fabric.messages.text import JsonObject, legible

if TYPE_CHECKING:
    from fabric.messages.place import Place


class FabricError(Exception):
    """Base of every error the fabric raises on purpose.

    Attributes:
        message: the sentence without the place. Passwords are hidden. Control characters are not
            escaped.
        file, line: the place in the user's files, if known.
    """

    def __init__(self, message: str, *, file: str | None = None, line: int | None = None) -> None:
        message = without_passwords(message)
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line

    def __str__(self) -> str:
        """Return the place and the message, safe for terminals."""
        if self.file is None:
            return legible(self.message)
        if self.line is None:
            return legible(f"{self.file}: {self.message}")
        # Imported only for errors, since it takes a while.
        from fabric.messages.place import Place

        return legible(f"{Place(self.file, self.line)}: {self.message}")


class ConfigurationError(FabricError):
    """A hardware description, a depth or an option that cannot be used."""


class ProgramError(FabricError):
    """A program file or a graph that cannot be run."""


class ShapeError(ProgramError):
    """Shapes or element types of streams that do not fit their operator."""


class CapacityError(FabricError):
    """A buffer that can never fit in the on-chip memory."""


class OperatorError(FabricError):
    """An operator, or a function a user gave it, that failed while the program ran.

    Attributes:
        operator: the unit's name in reports.
        cycle: the unit's clock.
        element: how many elements the unit had taken.
    """

    def __init__(
        self,
        message: str,
        *,
        operator: str,
        cycle: int,
        element: int,
        file: str | None = None,
        line: int | None = None,
    ) -> None:
        super().__init__(message, file=file, line=line)
        self.operator = operator
        self.cycle = cycle
        self.element = element


class Refusal(Exception):  # noqa: N818 - named after the action
    """A refused action of a user's operator or function, before it becomes an OperatorError.

    Attributes:
        place: the user's line; None if the traceback has it.
        counted: the message has the number of the element already.
    """

    def __init__(self, message: str, *, place: Place | None = None, counted: bool = False) -> None:
        super().__init__(message)
        self.place = place
        self.counted = counted


class Deadlock(FabricError):  # noqa: N818 - the word users search for
    """A run that ended in a deadlock or a livelock.

    Attributes:
        report: the field ``deadlock`` of ``run --json``.
    """

    def __init__(self, message: str, *, report: JsonObject) -> None:
        super().__init__(message)
        self.report = report


class VerificationError(FabricError):
    """A program that completed with outputs that differ from the expected outputs.

    Attributes:
        verification: the field ``verification`` of ``run --json``.
    """

    def __init__(self, message: str, *, verification: JsonObject) -> None:
        super().__init__(message)
        self.verification = verification


def error_text(error: BaseException) -> str:
    """Return the type and the text of ``error``; the ``__str__`` of a user's class may raise."""
    name = type(error).__name__
    try:
        text = str(error).strip()
    except BaseException as inner:  # noqa: BLE001 - whatever the user's code raises
        return f"{name}, and its text raised {type(inner).__name__}"
    return f"{name}: {text}" if text else name
