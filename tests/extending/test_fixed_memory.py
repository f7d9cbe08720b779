"""A memory of one's own: every burst takes the same time, whoever else asks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest

from fabric import Bounds, Burst, OffChipDescription, Program, Unit, register_memory
from fabric.shell.cli import main
from operators import LinearOffChipLoad, LinearOffChipStore, Tensor


@dataclass(frozen=True, kw_only=True)
class _Fixed(OffChipDescription):
    model = "fixed"
    latency_cycles: Annotated[int, Bounds(1)] = 100
    request_bytes: Annotated[int, Bounds(1)] = 64
    peak_bytes_per_cycle: Annotated[int, Bounds(1)] = 1024


class _FixedMemory:
    final_cycle = None

    def __init__(self, description: _Fixed, _readers: object, _writers: object) -> None:
        self.description = description
        self.under_way: dict[Unit, int] = {}
        self.bytes_moved = 0

    @property
    def pending(self) -> bool:
        return bool(self.under_way)

    def submit(self, unit: Unit, burst: Burst) -> None:
        self.under_way[unit] = burst.requests(self.description.request_bytes)
        self.bytes_moved += self.under_way[unit] * self.description.request_bytes

    def served(self, unit: Unit) -> int:
        return self.under_way[unit]

    def advance(self, _horizon_cycle: int) -> list[Unit]:
        done, self.under_way = list(self.under_way), {}
        for unit in done:
            unit.answered(unit.now + self.description.latency_cycles)
        return done


register_memory(_Fixed, _FixedMemory)


def build() -> Program:
    """Copy four tiles."""
    with Program("copy") as program:
        LinearOffChipStore("y", name="store")(LinearOffChipLoad(Tensor((4, 64)), (1, 64))())
    return program


@pytest.mark.parametrize("latency", [100, 7])
def test_cycles(latency: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tile n of 4 is sent at (n + 1) L, seen a cycle later, and stored L after that or the last."""
    hardware, logs = tmp_path / "fixed.toml", str(tmp_path / "logs")
    hardware.write_text(f'[hbm]\nmodel = "fixed"\nlatency_cycles = {latency}', encoding="utf-8")
    assert 0 == main(["run", __file__, "--hardware", str(hardware), "--log-dir", logs, "--json"])
    report = json.loads(capsys.readouterr().out)
    assert (5 * latency + 1, 2 * 4 * 128) == (report["cycles"], report["hbm_bytes_moved"])
    assert 1024 / ((5 * latency + 1) * 1024) == report["off_chip_bandwidth_utilization"]
