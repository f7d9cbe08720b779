"""The memory behind the chip's pins: what the fabric asks of it, whatever stands in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, TypeVar

from fabric.arguments.described import checked
from fabric.engine.unit import Unit
from fabric.hardware.description import FlatDescription, OffChipDescription
from fabric.hardware.models import add_model
from fabric.telling.errors import ConfigurationError

__all__ = ["Burst", "OffChip", "Region", "memory_of", "register_memory"]


class Burst(NamedTuple):
    """A tile on its way between the chip and off-chip memory.

    Row r of it is the ``row_bytes`` bytes from ``address + r * pitch_bytes`` on: the rows of a tile
    are as far apart as those of the tensor that it is a part of.

    Attributes:
        address: of its first byte, in the program's one address space.
        rows: at least 1.
        row_bytes: of each row, at least 1.
        pitch_bytes: from the first byte of a row to that of the next.
        write: to the memory; else from it.
    """

    address: int
    rows: int
    row_bytes: int
    pitch_bytes: int
    write: bool

    def requests(self, request_bytes: int) -> int:
        """Return its requests of ``request_bytes``: a row is never merged with the next one."""
        return self.rows * -(-self.row_bytes // request_bytes)


class Region(NamedTuple):
    """Where the tensor of an off-chip operator is in the program's address space.

    Attributes:
        first_address: of its first byte.
        size_bytes: room for it.
        write: the operator writes it; else it reads it.
    """

    first_address: int
    size_bytes: int
    write: bool


class OffChip(Protocol):
    """A memory that off-chip operators share.

    A unit hands over one burst at a time, at its own clock, and parks. Only when no unit can run is
    the memory told to advance: then it knows every burst of the cycles up to the horizon.
    """

    @property
    def pending(self) -> bool:
        """Whether a burst is under way."""
        ...

    @property
    def bytes_moved(self) -> int:
        """Bytes of all requests that the memory has taken, whole requests each."""
        ...

    @property
    def final_cycle(self) -> int | None:
        """The cycle in which it stops, once its clients have ended; None before.

        A memory that never outlasts its clients says None all along.
        """
        ...

    def submit(self, unit: Unit, burst: Burst) -> None:
        """Take ``burst`` at the clock of ``unit``, which has none under way.

        Raises:
            Refusal: the memory cannot serve it.
        """
        ...

    def advance(self, horizon_cycle: int) -> list[Unit]:
        """Go on to the first completion, or up to ``horizon_cycle``; called while one is pending.

        Returns:
            The units whose bursts are complete, in the order of the memory's ports; each has been
            ``answered``: its clock is the cycle in which it sees that, and what it waited counts.
        """
        ...

    def served(self, unit: Unit) -> int:
        """Return how many requests of the unit's burst under way have been taken."""
        ...


Described = TypeVar("Described", bound=OffChipDescription)


def _flat(description: FlatDescription, readers: list[Unit], writers: list[Unit]) -> OffChip:
    # Its loop is compiled: whoever has another memory does not wait for numba.
    from fabric.engine.flat_memory import FlatMemory

    return FlatMemory(description, readers, writers)


_MAKERS: Final[dict[type[OffChipDescription], Callable[..., OffChip]]] = {FlatDescription: _flat}


@checked
def register_memory(
    description: type[Described], make: Callable[[Described, list[Unit], list[Unit]], OffChip]
) -> None:
    """Let hardware files and ``Hardware(hbm=...)`` choose a memory of one's own.

    Args:
        description: a frozen dataclass: its ``model`` is what ``[hbm] model`` says, its fields,
            each with a default, are the other keys of the section. It takes the place of a model of
            that name that was registered before.
        make: called for every run with a description, the units that read from the memory and
            those that write to it, in the order of their ports; returns an ``OffChip``. A class
            will do.

    Raises:
        ConfigurationError: the description is none, has no name or that of one of the fabric's own
            models, or a field without a default.
    """
    add_model(description)
    _MAKERS[description] = make


def memory_of(
    description: OffChipDescription, readers: list[Unit], writers: list[Unit]
) -> OffChip | None:
    """Return the memory that ``description`` describes; None where it has no clients.

    Raises:
        ConfigurationError: the model was not registered.
    """
    if not readers and not writers:
        return None
    kind = type(description)
    if kind not in _MAKERS:
        raise ConfigurationError(
            f"hbm is a {kind.__name__}, a model that is not registered: "
            f"expected register_memory({kind.__name__}, ...) before"
        )
    return _MAKERS[kind](description, readers, writers)
