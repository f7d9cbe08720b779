"""Whether the files beside a trace's tables are as a run writes them."""

from __future__ import annotations

# Any: values of parameters, which are only shown.
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from fabric.telling.plain import untellable

if TYPE_CHECKING:
    from fabric.telling.plain import JsonObject

__all__ = ["SharedLinks", "is_number", "is_whole", "shared_links_in"]

_MOST: Final = (1 << 63) - 1
"""The largest of the database's whole numbers."""

_Number = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]


class _Memory(msgspec.Struct, frozen=True):
    request_bytes: _Number
    peak_bytes_per_cycle: Annotated[float, msgspec.Meta(ge=0, le=_MOST)]


class _OnChip(msgspec.Struct, frozen=True):
    capacity_bytes: _Number | None = None


class _Hardware(msgspec.Struct, frozen=True):
    on_chip: _OnChip = msgspec.field(default_factory=_OnChip)


class Flow(msgspec.Struct, frozen=True):
    """A route over links, or a tree of routes.

    Attributes:
        links: by number, one at least.
        channels: that it leads to, likewise.
    """

    links: Annotated[tuple[_Number, ...], msgspec.Meta(min_length=1)]
    channels: Annotated[tuple[_Number, ...], msgspec.Meta(min_length=1)]


class SharedLinks(msgspec.Struct, frozen=True):
    """Links that channels share.

    Attributes:
        capacities: bytes a cycle of each.
        flows: over them, each channel in one at most.
    """

    capacities: tuple[Annotated[int, msgspec.Meta(ge=1, le=1 << 20)], ...] = ()
    flows: tuple[Flow, ...] = ()

    def __post_init__(self) -> None:
        """Refuse links that there are not, and what is there twice."""
        channels = [each for flow in self.flows for each in flow.channels]
        if len({*channels}) < len(channels):
            raise ValueError("a channel is in several flows")
        for flow in self.flows:
            if len({*flow.links}) < len(flow.links) or max(flow.links) >= len(self.capacities):
                raise ValueError("a route takes a link twice, or one that there is not")


class _Head(msgspec.Struct, frozen=True):
    """What is computed with; the rest of it is only shown."""

    off_chip: _Memory
    hardware: _Hardware = msgspec.field(default_factory=_Hardware)
    parameters: dict[str, Any] = {}
    window: tuple[_Number, _Number] | None = None
    nodes: str | None = None
    shared_links: SharedLinks = SharedLinks()


def is_whole(meta: JsonObject) -> bool:
    """Whether what is computed with of ``meta.json`` is what a run writes."""
    try:
        head = msgspec.convert(meta, _Head)
    except msgspec.ValidationError:
        return False
    # A NaN is in no range, and outside of none.
    return head.off_chip.peak_bytes_per_cycle >= 0 and untellable(meta) is None


def shared_links_in(meta: JsonObject) -> SharedLinks:
    """Return the links that channels share, of a head that is whole; none where they share none."""
    return msgspec.convert(meta, _Head).shared_links


def is_number(found: object) -> bool:
    """Whether ``found`` is a number of cycles or bytes that the database can hold."""
    return isinstance(found, int) and 0 <= found <= _MOST
