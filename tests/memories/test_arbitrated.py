from __future__ import annotations

import random
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import operators as op
from fabric import ConfigurationError, Hardware, Hop, Program, hardware_scope, simulate
from fabric.extend import BankedDescription, FixedDescription, FlatDescription, OffChipDescription
from fabric.graph.hardware.address_space import Burst
from fabric.graph.hardware.memory_models import ArbitratedBanksDescription, ArbitratedDescription
from fabric.timing.memories.arbitrated import ArbitratedMemory, Request, behind_arbiter
from tests.hdl import design
from tests.hdl.banks import BankedMemory
from tests.memories.driven import answers, clients_of
from tests.profiles import of_profile, spread

# The last row number is row 0 again.
ROWS = (0, 1, 2, 0x3FFF, 0x4000)


@pytest.mark.parametrize("seed", range(of_profile(12, 200)))
def test_channel_answers_in_the_cycles_of_the_controller_model(seed: int) -> None:
    source = random.Random(seed)
    banks = [source.randrange(16) for _ in range(source.choice([1, 2, 5, 16, 16]))]
    rows = ROWS[: source.randint(1, 5)]
    writes, pace = source.choice([0, 0.1, 0.5, 0.9, 1]), source.choice([0.05, 0.3, 1])
    found, expected = behind_arbiter(ArbitratedBanksDescription()), BankedMemory()
    for cycle in range(900):
        if cycle < 700 and source.random() < pace:
            row, bank, column = source.choice(rows), source.choice(banks), source.randrange(8)
            address, write = row << 16 | bank << 12 | column << 9, source.random() < writes
            took = found.take(Request(3, address, write), cycle)
            assert took == expected.send(cycle, 3, address, write)
        answer = found.step(cycle)
        answered = None if answer is None else (answer.port, answer.address)
        assert answered == expected.step(cycle)


class _Client:
    def __init__(self, made: design.Design, size: int, gaps: list[int], *, reads: bool) -> None:
        self._made, self._size, self._gaps, self._reads = made, size, [*gaps, 0], reads
        self._requests, _, self._answers = made.port()
        self._seen = made.fifo()
        self._since, self._asked = gaps[0], 0
        self.done: list[int] = []

    @property
    def has_all(self) -> bool:
        return len(self.done) == len(self._gaps) - 1

    def _complete(self) -> bool:
        number = len(self._gaps) - 2 if self._reads else len(self.done)
        wanted = (number + 1) * self._size - 512
        if self._reads:
            wanted = max(wanted, number * self._size, 1)
        if self._asked >= wanted:
            return not self._reads
        if self._requests.takes:
            self._requests.put((self._asked, not self._reads))
            self._asked += 512
        return False

    def rule(self) -> None:
        waits = not self.has_all and self._since <= self._made.cycle
        complete = (self._reads or waits) and self._complete()
        if self._seen.gives:
            reached = self._seen.items[0] + 512
            complete = waits and reached >= len(self.done) * self._size
            if reached < (len(self.done) + complete) * self._size:
                self._seen.take()
        if self._answers.gives and self._seen.takes:
            self._seen.put(self._answers.take())
        if complete:
            self.done.append(self._made.cycle)
            self._since = self._made.cycle + self._gaps[len(self.done)]


def _modelled(
    sizes: list[int], gaps: list[list[int]], readers: int, in_flight: int, room: int
) -> list[list[int]]:
    with mock.patch.multiple(design, READS_IN_FLIGHT=in_flight, ANSWERS=room):
        made = design.Design(design.IdealMemory())
        clients = [
            _Client(made, size, its, reads=at < readers)
            for at, (size, its) in enumerate(zip(sizes, gaps, strict=True))
        ]
        made.rules += [client.rule for client in clients]
        while not all(client.has_all for client in clients):
            for rule in made.rules:
                rule()
            for fifo in made.fifos:
                fifo.held = len(fifo.items)
            made.clock.cycle += 1
    return [client.done for client in clients]


@pytest.mark.parametrize("seed", range(of_profile(10, 400)))
def test_clients_take_turns_as_in_the_hardware_model(seed: int) -> None:
    source = random.Random(seed)
    readers, writers = source.randint(1, 4), source.randint(0, 3)
    sizes = [source.choice([64, 300, 512, 700, 1028, 2050]) for _ in range(readers + writers)]
    waits = [[0, 0, 3], [0, 40], [0, 1, 300]]
    gaps = [
        [1, *(source.choice(its) for _ in range(source.randint(0, 14)))]
        for its in source.choices(waits, k=len(sizes))
    ]
    in_flight, room = source.choice([(1, 5), (2, 14), (10, 14), (64, 128)])
    units = clients_of(sizes)
    memory = ArbitratedMemory(
        ArbitratedDescription(tag_bytes=4, reads_in_flight=in_flight, answers=room),
        units[:readers],
        units[readers:],
    )
    bursts = [
        [Burst(0, 1, size - 4, size, write=at >= readers) for _ in its]
        for at, (size, its) in enumerate(zip(sizes, gaps, strict=True))
    ]
    for unit in units[:readers]:
        memory.announce(unit, iter(bursts[unit.index]))
    script = [[*zip(*each, strict=True)] for each in zip(gaps, bursts, strict=True)]
    assert answers(memory, units, script, [1]) == _modelled(sizes, gaps, readers, in_flight, room)
    assert not memory.pending


@pytest.mark.parametrize("in_flight", [1, 2, 9])
@pytest.mark.parametrize("interval_cycles", [1, 3])
def test_reader_that_does_not_take_answers_blocks_no_other(
    in_flight: int, interval_cycles: int
) -> None:
    def described(answers: int) -> ArbitratedDescription:
        return ArbitratedDescription(
            reads_in_flight=in_flight, answers=answers, interval_cycles=interval_cycles
        )

    late, reader = units = clients_of([(), ()])
    memory = ArbitratedMemory(described(in_flight + 4), units, [])
    burst = Burst(0, 1, 512, 512, write=False)
    memory.announce(late, iter([burst] * 100))
    assert memory.advance(800) == []
    reader.now = 800
    memory.submit(reader, burst)
    assert memory.advance(1_000) == [reader]
    with pytest.raises(ConfigurationError) as refused:
        described(in_flight + 3)
    assert refused.value.message == (
        f"ArbitratedDescription: answers is {in_flight + 3}: expected at least {in_flight + 4}, "
        "reads_in_flight + 4"
    )


def test_tile_smaller_than_a_request_is_read() -> None:
    data = np.arange(16, dtype=np.float32).reshape(4, 4)
    with (
        hardware_scope(Hardware(hbm=ArbitratedDescription())),
        Program("one", mode="functional") as program,
    ):
        op.LinearOffChipStore("y")(op.LinearOffChipLoad(op.Tensor((4, 4), data), tile=(4, 4))())
    program.expect(y=lambda: data)
    assert simulate(program).verified


@pytest.mark.parametrize("address_cycle", spread([1, 1000], 1))
@pytest.mark.parametrize("shared", spread([True, False], 1))
@pytest.mark.parametrize(
    "memory",
    [
        ArbitratedDescription(latency_cycles=300),
        ArbitratedBanksDescription(cl_cycles=300),
        BankedDescription(cl_cycles=300),
        FixedDescription(latency_cycles=300),
        FlatDescription(latency_cycles=300),
    ],
)
def test_no_read_is_answered_before_its_latency(
    memory: OffChipDescription, address_cycle: int, tmp_path: Path, *, shared: bool
) -> None:
    with hardware_scope(Hardware(hbm=memory)), Program("late") as program:
        addresses = op.Metadata(np.array([0, 1, 1]))()
        op.Consumer()(op.RandomOffChipLoad(op.Tensor((8, 4)), (2, 4), name="late")(addresses))
        if shared:
            op.Consumer()(op.LinearOffChipLoad(op.Tensor((64, 4)), (2, 4))())
    hops = {"late.0": Hop(address_cycle, 1)}
    report = simulate(program, mode="timing", hops=hops, trace="events", log_dir=tmp_path)
    bursts = report.trace().query(
        "SELECT end_cycle - submitted_cycle FROM bursts JOIN units USING (unit) WHERE name = 'late'"
    )
    assert min(cycles for (cycles,) in bursts.rows()) >= 300
