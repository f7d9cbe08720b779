"""Off-chip memories by their descriptions: the fabric's own, and those that users register."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from fabric.graph.arguments.described import checked
from fabric.graph.hardware.description import FlatDescription, OffChipDescription
from fabric.messages.telling.errors import ConfigurationError
from fabric.messages.telling.wording import found_text
from fabric.timing.engine.off_chip import OffChip
from fabric.timing.engine.unit import Unit
from fabric.timing.memories.flat import FlatMemory

Description = TypeVar("Description", bound=OffChipDescription)


_MAKERS: Final[dict[type[OffChipDescription], Callable[..., OffChip]]] = {
    FlatDescription: FlatMemory
}
"""Constructors of the default memory and of users' memories."""


@checked
def register_memory(
    description: type[Description], make: Callable[[Description, list[Unit], list[Unit]], OffChip]
) -> None:
    """Make a memory of your own available to hardware files and ``Hardware(hbm=...)``.

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
    from fabric.graph.hardware.memory_models import add_model

    add_model(description)
    _MAKERS[description] = make


@checked
def memory_of(description: OffChipDescription, readers: list[Unit], writers: list[Unit]) -> OffChip:
    """Return the memory that ``description`` describes, also for one that stands in front of it.

    Args:
        description: of a model of the fabric's, or of one that was registered.
        readers: the units that read from it, in the order of their ports.
        writers: those that write to it, likewise; at least one of either.

    Raises:
        ConfigurationError: the model was not registered, or what was makes no memory.
    """
    kind = type(description)
    make = _maker_of(kind)
    if make is None:
        raise ConfigurationError(
            f"hbm is a {kind.__name__}, a model that is not registered: "
            f"expected register_memory({kind.__name__}, ...) before"
        )
    memory = make(description, readers, writers)
    if not (hasattr(memory, "submit") and hasattr(memory, "advance")):
        raise ConfigurationError(
            f"what register_memory({kind.__name__}, ...) was given returned {found_text(memory)}: "
            "expected an OffChip"
        )
    return memory


def _maker_of(kind: type[OffChipDescription]) -> Callable[..., OffChip] | None:
    if kind in _MAKERS:
        return _MAKERS[kind]
    # Importing them takes milliseconds of every run, which those on other memories do without.
    from fabric.graph.hardware.memory_models import (
        BankedDescription,
        FixedDescription,
        PortDescription,
    )

    if kind is BankedDescription:
        from fabric.timing.memories.banked import BankedMemory

        return BankedMemory
    if kind is FixedDescription:
        from fabric.timing.memories.fixed_latency import FixedMemory

        return FixedMemory
    if issubclass(kind, PortDescription):
        from fabric.timing.memories.arbitrated import ArbitratedMemory

        return ArbitratedMemory
    return None
