"""A user's memory: a burst is fast if it begins where the last burst of its client ended."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest

from fabric import Program
from fabric.extend import Bounds, Burst, OffChipDescription, Unit, register_memory
from fabric.shell.cli import main
from operators import LinearOffChipLoad, LinearOffChipStore, Tensor


@dataclass(frozen=True, kw_only=True)
class _Streams(OffChipDescription):
    model = "streams"
    first_cycles: Annotated[int, Bounds(1)] = 100
    next_cycles: Annotated[int, Bounds(1)] = 20
    request_bytes: Annotated[int, Bounds(1)] = 64
    peak_bytes_per_cycle: Annotated[int, Bounds(1)] = 1024


class _StreamsMemory:
    final_cycle = None

    def __init__(self, description: _Streams, readers: list[Unit], writers: list[Unit]) -> None:
        self.description = description
        self.ports = [*readers, *writers]
        self.under_way: dict[Unit, Burst] = {}
        self.ends: dict[Unit, int] = {}
        self.bytes_moved = 0

    @property
    def pending(self) -> bool:
        return bool(self.under_way)

    def submit(self, unit: Unit, burst: Burst) -> None:
        self.under_way[unit] = burst
        self.bytes_moved += self.served(unit) * self.description.request_bytes

    def served(self, unit: Unit) -> int:
        return self.under_way[unit].requests(self.description.request_bytes)

    def advance(self, _horizon_cycle: int) -> list[Unit]:
        done = [unit for unit in self.ports if unit in self.under_way]
        for unit in done:
            burst = self.under_way.pop(unit)
            goes_on = self.ends.get(unit) == burst.address
            last_row = burst.address + (burst.rows - 1) * burst.pitch_bytes
            self.ends[unit] = last_row + burst.row_bytes
            hbm = self.description
            unit.answered(unit.now + (hbm.next_cycles if goes_on else hbm.first_cycles))
        return done


register_memory(_Streams, _StreamsMemory)


def build(columns: int = 64) -> Program:
    with Program("copy") as program:
        LinearOffChipStore("y", name="store")(LinearOffChipLoad(Tensor((8, columns)), (2, 64))())
    return program


@pytest.mark.parametrize(("columns", "tiles"), [(64, 4), (128, 8)])
def test_users_memory_answers_in_its_cycles(
    columns: int, tiles: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hardware, logs = tmp_path / "streams.toml", str(tmp_path / "logs")
    hardware.write_text('[hbm]\nmodel = "streams"\nfirst_cycles = 40', encoding="utf-8")
    parameters = ["-p", f"columns={columns}"]
    file = ["--hardware", str(hardware), "--log-dir", logs, "--json"]
    assert 0 == main(["run", __file__, *parameters, *file])
    report = json.loads(capsys.readouterr().out)
    goes_on = [number > 0 and number * 64 % columns == 0 for number in range(tiles)]
    cycles = 40 + 1 + sum(20 if each else 40 for each in goes_on)
    assert (cycles, 2 * tiles * 256) == (report["cycles"], report["hbm_bytes_moved"])
    assert 2 * tiles * 256 / (cycles * 1024) == report["off_chip_bandwidth_utilization"]
