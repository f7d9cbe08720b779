"""The off-chip memory, cycle by cycle."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from tests.model.engine import Process, Simulation, Steps

if TYPE_CHECKING:
    from tests.model.graph import Setting


class Client:
    """A load or a store.

    Attributes:
        bundles: (stamp, addresses) not yet accepted.
        missing: responses still to come.
    """

    def __init__(self, hbm: Hbm) -> None:
        self.hbm = hbm
        self.bundles: deque[tuple[int, int]] = deque()
        self.missing = 0
        self.process: Process | None = None

    def access(self, p: Process, rows: int, cols: int) -> Steps[None]:
        """Move one tile; ``p`` continues with the last response."""
        setting = self.hbm.setting
        total = rows * -(-cols * setting.element_bytes // setting.request)
        self.process, self.missing = p, total
        for k in range(-(-total // setting.bundle)):
            left = total - k * setting.bundle
            self.bundles.append((max(p.t + k, p.t + 1), min(left, setting.bundle)))
        self.hbm.wake(p.t + 1)
        yield None
        p.t = p.simulation.now

    def answer(self, cycle: int) -> None:
        assert self.process is not None
        self.process.wake(cycle)


class Hbm:
    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.readers: list[Client] = []
        self.writers: list[Client] = []

    def reader(self) -> Client:
        self.readers.append(Client(self))
        return self.readers[-1]

    def writer(self) -> Client:
        self.writers.append(Client(self))
        return self.writers[-1]

    def attach(self, simulation: Simulation) -> None:
        self._process = Process(simulation, "HBM")
        self._process.steps = self._run(simulation)

    def wake(self, cycle: int) -> None:
        self._process.simulation.push(cycle, self._process)

    def clock(self) -> int:
        """Return the memory's last cycle, 3 cycles after its last client's; 0 without clients."""
        clients = (*self.readers, *self.writers)
        return max((each.process.t + 3 for each in clients if each.process), default=0)

    def _run(self, simulation: Simulation) -> Steps[None]:
        setting = self.setting
        count = setting.channels
        offset = 0
        free = [0] * count
        waiting: list[deque[tuple[int, Client]]] = [deque() for _ in range(count)]
        clients = [*self.readers, *self.writers]
        while True:
            cycle = simulation.now
            for queue in waiting:
                if queue and queue[0][0] <= cycle:
                    _, client = queue.popleft()
                    client.missing -= 1
                    if not client.missing:
                        client.answer(cycle + 1)
            requests: list[Client] = []
            for client in clients:
                if client.bundles and client.bundles[0][0] <= cycle:
                    _, size = client.bundles.popleft()
                    requests += [client] * size
            for i, client in enumerate(requests):
                j = (offset + i * (i + 1) // 2) % count
                start = max(free[j], cycle + 1)
                waiting[j].append((start + setting.startup + setting.latency, client))
                free[j] = start + setting.interval
            offset = (offset + len(requests) * (len(requests) + 1) // 2) % count
            if any(client.bundles for client in clients):
                yield cycle + 1
            else:
                ready = [queue[0][0] for queue in waiting if queue]
                yield max(min(ready), cycle + 1) if ready else None
