"""The fixed memory: the cycles of a burst depend on the burst alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fabric.graph.values.fit import MOST_CYCLES
from fabric.messages.errors import Refusal
from fabric.messages.text import counted

if TYPE_CHECKING:
    from fabric.graph.hardware.address_space import Burst
    from fabric.graph.hardware.memory_models import FixedDescription
    from fabric.timing.engine.unit import Unit


class FixedMemory:
    """Latency and bandwidth for each client, without queues."""

    final_cycle: Final = None

    def __init__(
        self, description: FixedDescription, readers: list[Unit], writers: list[Unit]
    ) -> None:
        self._description: Final = description
        self._port: Final = {unit: port for port, unit in enumerate([*readers, *writers])}
        self._under_way: Final[dict[Unit, tuple[int, int]]] = {}
        self.bytes_moved = 0

    @property
    def pending(self) -> bool:
        return bool(self._under_way)

    def submit(self, unit: Unit, burst: Burst) -> None:
        """Take a burst at the unit's clock; refuse one that ends in cycle 2**60 or later."""
        requests = burst.requests(self._description.request_bytes)
        cycles = self._description.burst_cycles(requests)
        if cycles >= MOST_CYCLES - unit.now:
            raise Refusal(
                f"a tile of {counted(burst.rows, 'row')} of "
                f"{counted(burst.row_bytes, 'byte')} takes "
                f"{counted(cycles, 'cycle')}: expected a clock that stays below 2**60"
            )
        self._under_way[unit] = unit.now + cycles, requests
        self.bytes_moved += requests * self._description.request_bytes

    def served(self, unit: Unit) -> int:
        return self._under_way[unit][1]

    def advance(self, horizon_cycle: int) -> list[Unit]:
        ready = {unit: cycle for unit, (cycle, _) in self._under_way.items()}
        done = [unit for unit, cycle in ready.items() if cycle <= horizon_cycle]
        done.sort(key=self._port.__getitem__)
        for unit in done:
            del self._under_way[unit]
            unit.answered(ready[unit])
        return done
