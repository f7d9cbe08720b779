"""The hardware description: a TOML file read into a frozen, checked value.

The defaults are the evaluation fabric of Streaming Tensor Programs, arXiv 2511.07776v2, 5.1.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec

__all__ = [
    "ChannelDescription",
    "ComputeDescription",
    "DtypeName",
    "Hardware",
    "HbmDescription",
    "OnChipDescription",
    "TileDescription",
]

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
Cycles: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Channels: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=2**20)]
Bundle: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=2**16)]
Bytes: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=2**62)]
DtypeName: TypeAlias = Literal[
    "float32",
    "float16",
    "bfloat16",
    "float8_e4m3",
    "float8_e5m2",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
]


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the file: every key optional, none unknown."""


class HbmDescription(_Section, frozen=True):
    """Off-chip memory.

    Attributes:
        channels: served side by side.
        request_bytes: moved by one request.
        latency_cycles: from the start of a request to its response, after the start-up.
        initiation_interval_cycles: between two requests on one channel.
        startup_cycles: paid by every request.
        requests_per_bundle: what one client hands over in one cycle.
    """

    channels: Channels = 32
    request_bytes: Count = 64
    latency_cycles: Cycles = 2
    initiation_interval_cycles: Count = 2
    startup_cycles: Cycles = 14
    requests_per_bundle: Bundle = 1


class OnChipDescription(_Section, frozen=True):
    """Memory units.

    Attributes:
        bytes_per_cycle: between one memory unit and its reader or writer.
        capacity_bytes: of all memory units together; None for unlimited.
    """

    bytes_per_cycle: Count = 64
    capacity_bytes: Bytes | None = None


class ChannelDescription(_Section, frozen=True):
    """Channels whose depth the program leaves open.

    Attributes:
        depth: in elements.
    """

    depth: Count = 2


class ComputeDescription(_Section, frozen=True):
    """Compute units whose throughput the program leaves open.

    Attributes:
        flops_per_cycle: of one unit.
    """

    flops_per_cycle: Count = 4096


class TileDescription(_Section, frozen=True):
    """Tiles whose element type the program leaves open.

    Attributes:
        dtype: the name of the element type.
    """

    dtype: DtypeName = "bfloat16"


class Hardware(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A fabric: one description per part, the paper's evaluation fabric where nothing is said."""

    hbm: HbmDescription = HbmDescription()
    on_chip: OnChipDescription = OnChipDescription()
    channel: ChannelDescription = ChannelDescription()
    compute: ComputeDescription = ComputeDescription()
    tile: TileDescription = TileDescription()

    def as_dict(self) -> dict[str, dict[str, Any]]:
        """Return every key with its value, as a hardware file would state them."""
        return msgspec.to_builtins(self)  # type: ignore[no-any-return]
