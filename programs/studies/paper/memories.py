"""The points of the paper's workloads on the flat memory and on a memory with banks.

Both memories give at most 1,024 bytes per cycle. The flat memory does so for any requests. For the
memory with banks (HBM2, 2000 Mbps, 32 channels), it depends on the requests in flight.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from fabric import ConfigurationError, Findings, Outcome, Space, grid, zipped
from paper.workloads import (
    MIXTRAL_64,
    MIXTRAL_1024,
    QWEN_64,
    QWEN_1024,
    TRACE_15,
    Layer,
    cache_traces,
    listed,
    multiplexed,
)

Keys: TypeAlias = Mapping[str, str | int | bool]
"""Values of hardware keys, ``hardware.SECTION.KEY``."""

_HARDWARE: Final = "hardware."
_MODEL: Final = "hardware.hbm.model"
FLAT: Final[Keys] = {_MODEL: "flat"}
BANKED: Final[Keys] = {_MODEL: "banked"}

LAYERS: Final = (
    MIXTRAL_64,
    QWEN_64,
    replace(MIXTRAL_1024, tiles=(128, 256, 512, 1024)),
    replace(QWEN_1024, tiles=(64, 128, 256)),
)
"""Static tiles as in figures 9 and 10. For batch 1024, only the tiles in the text and the fastest
tiles."""

TRACES_14: Final = cache_traces(64)


def workloads() -> Space:
    moe = grid(part=("moe",))
    alone = sum((each.space for each in LAYERS), Space(()))
    shared = multiplexed("static") + multiplexed("dynamic")
    attention = grid(part=("attention",))
    traces = grid(
        kv=[each.path for each in TRACES_14], requests=(64,), strategy=("interleaved", "dynamic")
    )
    # This trace with all of its requests is also a trace of figure 14.
    blocks = zipped(requests=(16, 16, 64), strategy=("coarse", "dynamic", "coarse"))
    return (
        moe * zipped(tile_f=(64,)) * alone
        + moe * zipped(tile_f=(48,), flops_per_cycle=(1024,)) * shared
        + attention * (traces + grid(kv=[TRACE_15.path]) * blocks)
    )


def space() -> Space:
    return sum(map(_varied, VARIATIONS), listed([FLAT, BANKED]) * workloads())


def _varied(each: Variation) -> Space:
    layers = sum((layer.published_space for layer in each.layers), Space(()))
    points = grid(part=("moe",), tile_f=(each.tile_f,)) * layers
    return listed([each.hardware, FLAT] if each.on_both else [each.hardware]) * points


VARIED: Final = (replace(QWEN_64, tiles=(64,)), replace(MIXTRAL_64, tiles=(32,)))
"""Layers with their fastest static tile and the dynamic tile."""


@dataclass(frozen=True)
class Variation:
    """A change of the memory with banks, or of its requests.

    Attributes:
        keys: hardware keys in addition to ``BANKED``.
        tile_f: columns of a weight tile.
        on_both: whether it affects the flat memory, too.
        layers: the layers of ``VARIED`` that run with it.
    """

    title: str
    keys: Keys = field(default_factory=dict)
    tile_f: int = 64
    on_both: bool = False
    layers: tuple[Layer, ...] = (VARIED[0],)

    @property
    def hardware(self) -> Keys:
        return {**BANKED, **self.keys}


_CONTIGUOUS: Final[Keys] = {"hardware.placement.tiles": "contiguous"}
# Each tensor starts at another channel, pseudo channel, bank group and bank.
_STAGGERED: Final[Keys] = {"hardware.placement.stagger_bytes": 2**18 + 2**12 + 2**11 + 2**6}
VARIATIONS: Final = (
    Variation("weight tiles of 128 columns", tile_f=128, on_both=True),
    Variation("weight tiles of 256 columns", tile_f=256, on_both=True),
    Variation("contiguous tiles", _CONTIGUOUS, layers=VARIED),
    Variation("staggered starts", _STAGGERED, layers=VARIED),
    Variation("contiguous tiles, staggered starts", {**_CONTIGUOUS, **_STAGGERED}, layers=VARIED),
    Variation("no channel hash", {"hardware.hbm.mapping": "interleaved"}),
    Variation("first come", {"hardware.hbm.scheduler": "first come"}),
    Variation("a window of 128 bursts", {"hardware.hbm.read_window_bursts": 128}),
    Variation("no refresh", {"hardware.hbm.refreshes": False}),
    Variation(
        "16 channels, bursts of 64 bytes",
        {
            "hardware.hbm.channels": 16,
            "hardware.hbm.burst_bytes": 64,
            "hardware.hbm.row_bytes": 2048,
        },
    ),
    Variation(
        "8 channels, bursts of 128 bytes",
        {
            "hardware.hbm.channels": 8,
            "hardware.hbm.burst_bytes": 128,
            "hardware.hbm.request_bytes": 128,
            "hardware.hbm.row_bytes": 4096,
        },
    ),
)
"""All memories have the same peak bandwidth."""


@dataclass(frozen=True)
class View:
    """The findings of a study on one hardware.

    Attributes:
        keys: all hardware keys of the selected points.
        setting: further parameters of the selected points.
    """

    findings: Findings
    keys: Keys
    setting: Mapping[str, object] = field(default_factory=dict)

    @property
    def outcomes(self) -> list[Outcome]:
        return self.matching()

    @property
    def front(self) -> list[int]:
        """Indices of the selected outcomes that no other outcome dominates."""
        selected = {outcome.index for outcome in self.outcomes}
        return [index for index in self.findings.front if index in selected]

    def matching(self, **setting: object) -> list[Outcome]:
        """Return the outcomes with these settings and no other hardware keys."""
        return [
            outcome
            for outcome in self.findings.matching(**self.setting, **setting)
            if self.keys
            == {key: value for key, value in outcome.setting.items() if key.startswith(_HARDWARE)}
        ]

    def value(self, metric: str, **setting: object) -> float | None:
        """Return a metric of the only point with these settings; None if it did not complete."""
        outcomes = self.matching(**setting)
        if len(outcomes) != 1:
            settings = ", ".join(f"{name}={value}" for name, value in setting.items())
            raise ConfigurationError(
                f"{len(outcomes)} points have {settings} on this hardware: expected 1"
            )
        value = outcomes[0].numbers.get(metric) if outcomes[0].status == "completed" else None
        return value if isinstance(value, int | float) else None
