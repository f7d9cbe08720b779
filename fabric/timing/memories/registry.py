"""Off-chip memories by their descriptions: the fabric's own, and those that users register."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from fabric.graph.arguments.described import checked
from fabric.graph.hardware.description import FlatDescription, OffChipDescription
from fabric.messages.errors import ConfigurationError
from fabric.messages.text import found_text
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
        description: a frozen dataclass. ``model`` is the value of ``[hbm] model``; the fields, each
            with a default, are the other keys of the section. It replaces an earlier registered
            model of the same name.
        make: a function or a class, called for every run with a description, the units that read
            from the memory, and the units that write to it, in port order. Returns an ``OffChip``.

    Raises:
        ConfigurationError: the class is not an ``OffChipDescription``, has no name, has the name of
            a model of the fabric, or has a field without a default.
    """
    from fabric.graph.hardware.memory_models import add_model

    add_model(description)
    _MAKERS[description] = make


@checked
def memory_of(description: OffChipDescription, readers: list[Unit], writers: list[Unit]) -> OffChip:
    """Return the memory of ``description``, for example for a wrapper of this memory.

    Args:
        description: of a model of the fabric, or of a registered model.
        readers: the units that read from the memory, in port order.
        writers: the units that write to it, in port order; there is at least one unit of either.

    Raises:
        ConfigurationError: the model is not registered, or its ``make`` returns no ``OffChip``.
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
            f"make of register_memory({kind.__name__}, ...) returned {found_text(memory)}: "
            "expected an OffChip"
        )
    return memory


def _maker_of(kind: type[OffChipDescription]) -> Callable[..., OffChip] | None:
    if kind in _MAKERS:
        return _MAKERS[kind]
    # Imported only for their runs, because importing takes milliseconds.
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
