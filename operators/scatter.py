"""Scatter: update the words of an on-chip memory at addresses, and read all words after each group.

Source: the updates of scratchpads in Spatial (Koeplinger et al., PLDI 2018) and the banked memory
that Capstan updates in place (Rucker et al., MICRO 2021); not in the paper's tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final, Literal

import numpy as np
from typing_extensions import override

from fabric import ARTIFACT_BYTES, ShapeError, Stream, StreamType, Tile, TileType
from fabric.extend import (
    Bounds,
    Costs,
    Empty,
    Operator,
    Ports,
    Rates,
    Value,
    Wiring,
    Work,
    check_same_shape,
    filled,
    kept_as,
    number_in,
    product,
)
from operators.functions.arithmetic import narrow, plus, wide
from operators.streams.reading import (
    Lockstep,
    Types,
    check_number,
    check_static,
    load_cycles,
    new_tile,
)
from operators.tiles.integers import check_integers, is_integer

Array = np.ndarray

_UPDATES: Final[dict[str, Callable[[Array, Array], Array]]] = {
    "add": plus,
    "max": np.maximum,
    "min": np.minimum,
}


@dataclass(frozen=True)
class Scatter(Operator):
    """Update the words of an on-chip memory at addresses; read all words back after each group.

    A word is a tile. At the beginning of each group all words are ``initial``. Updates of one
    address are made in the order in which they come. Floats stay in 32 bits until they are read
    back. An address beyond the last word is an error. Updates count as bytes that the memory reads
    and writes, not as FLOPs.

    Shapes:
        addresses: [D_a, ..., D_rank, ..., D_0] of 1x1 tiles of integers; values: the same shape,
        of tiles of a static size; output: [D_a, ..., D_rank, words] of tiles of that size. An
        empty group gives ``initial``.

    Timing:
        An issue has ``width`` updates, or the rest of a group. The bank of a word is its address
        modulo ``banks``. A bank makes one update at a time; an update takes as long as moving a
        word at the on-chip bandwidth. So an issue takes as long as the bank with most updates, or
        as long as loading values that are in memory, if that is longer. Reading back a word takes
        as long as an update, and no update is made meanwhile.

    Memory:
        On chip, all words, from the first update of a group until the last word has been sent.

    Attributes:
        words: number of words.
        update: the result of an update: the sum, the larger or the smaller number.
        rank: number of dimensions of a group.
        banks: number of banks.
        width: number of updates that are issued together.
        initial: the number in every place of a word before the first update.

    Example:
        >>> with Program("example", mode="functional") as program:
        ...     rows = Flatten(0, 1)(LinearOffChipLoad(np.ones((4, 32)), tile=(1, 32))())
        ...     places = Metadata(np.array([2, 0, 2, 2]))()
        ...     counted = Scatter(words=3)(places, rows)
        ...     LinearOffChipStore("y")(counted)
        >>> program.expect(y=lambda: np.array([[1, 0, 3]]).repeat(32, axis=1))
        >>> print(counted.type)
        [1, 3] of 1x32 bfloat16
        >>> print(simulate(program).verified)
        True
    """

    conducted = True
    kind = "memory"
    updates = (1,)
    no_order = "addresses decide which tiles it adds up"

    words: Annotated[int, Bounds(1)]
    update: Literal["add", "max", "min"] = "add"
    rank: Annotated[int, Bounds(1)] = 1
    banks: Annotated[int, Bounds(1)] = 1
    width: Annotated[int, Bounds(1)] = 1
    initial: float = 0.0

    def __call__(self, addresses: Stream, values: Stream) -> Stream:
        return self.wire(addresses, values)[0]

    @override
    def infer(self, wiring: Wiring, addresses: Stream, values: Stream) -> Types:
        check_integers("Scatter", addresses)
        check_same_shape("Scatter", addresses, values)
        if not self.rank <= addresses.rank:
            raise ShapeError(
                f"Scatter(rank={self.rank}) is given {addresses} of rank {addresses.rank}: "
                "expected groups of at most that rank"
            )
        word = check_static("Scatter updates by", values, values.value)
        check_number("Scatter begins", values, self.initial, word.dtype)
        return (StreamType((*addresses.shape[: -self.rank], self.words), word),)

    @override
    def costs(self, inputs: Types, outputs: Types) -> Costs:
        word = outputs[0].value
        assert isinstance(word, TileType)
        return Costs(
            on_chip_bytes=self.words * word.size_bytes,
            artifact_on_chip_bytes=self.words * word.size_elements * ARTIFACT_BYTES,
        )

    @override
    def work(self, inputs: Types, outputs: Types, rates: Rates) -> Work:
        values, (result,) = inputs[1], outputs
        word = rates.transfer(values.value)
        # At best, the updates of an issue are spread evenly over the banks.
        at_once = min(self.width, self.banks)
        group, count = product(values.shape[-self.rank :]), values.count
        updating = count * word // at_once if isinstance(count, int) else 0
        # Words that are read back before the first update belong to empty groups.
        full = isinstance(group, int) and group > 0
        back = (result.count if full else self.words) - 1
        return Work(
            cycles=updating + back * word,
            first_cycles=group * word // at_once if isinstance(group, int) else 0,
            last_cycles=self.words * word,
            pace_cycles=word,
        )

    @override
    async def run(self, ports: Ports) -> None:
        unit, sink, rank = ports.unit, ports.sink, self.rank
        memory = _Memory(ports, self)
        inputs = Lockstep[Tile | Empty](ports)
        async for (address, value), stop in inputs:
            if isinstance(address, Empty) and address.dimension >= rank:
                inputs.take()
                await sink.send_bare(stop - rank + 1, address.dimension - rank + 1)
                continue
            if not memory.is_open:
                await memory.open()
            if isinstance(address, Tile) and isinstance(value, Tile):
                memory.update(address, value)
            inputs.take()
            if stop >= rank:
                memory.issue()
                for number in range(self.words):
                    level = stop - rank + 1 if number == self.words - 1 else 0
                    await sink.send((memory.word(number), level))
                    unit.charge(memory.word_cycles)
                memory.close()


class _Memory:
    """The words of one group, and the updates that have not been issued.

    Attributes:
        is_open: whether a group has begun.
        word_cycles: cycles for moving one word at the on-chip bandwidth.
    """

    def __init__(self, ports: Ports, operator: Scatter) -> None:
        self._type = ports.output_types[0].value
        self._ports = ports
        self._operator = operator
        word = new_tile(self._type)
        self._size_bytes = word.size_bytes * operator.words
        self._combine = _UPDATES[operator.update]
        self._first: Array | None = None
        if ports.functional or is_integer(self._type):
            shape = word.rows, word.cols
            self._first = wide(filled(shape, operator.initial, kept_as(word.dtype)))
        self._words: list[Array | None] = []
        self._waiting: Counter[int] = Counter()
        self._load_cycles = 0
        self.is_open = False
        self.word_cycles: Final = max(1, ports.unit.transfer(word.size_bytes))

    async def open(self) -> None:
        """Begin a group, once there is room on chip for all words."""
        await self._ports.on_chip.allocate(self._ports.unit, self._size_bytes, "a memory of words")
        self._words = [self._first] * self._operator.words
        self.is_open = True

    def update(self, address: Tile, value: Tile) -> None:
        """Update the word at ``address``; the cycles are charged when an issue is full."""
        place, words, operator = number_in(address), self._words, self._operator
        if not 0 <= place < len(words):
            raise self._ports.failure(
                f"an update of word {place:,} of {len(words):,}: expected 0 to {len(words) - 1:,}"
            )
        before, data = words[place], value.data
        words[place] = None if before is None or data is None else self._combine(before, wide(data))
        self._waiting[place % operator.banks] += 1
        self._load_cycles += load_cycles(self._ports.unit, value)
        if self._waiting.total() == operator.width:
            self.issue()

    def issue(self) -> None:
        """Charge the cycles of the updates that have not been issued."""
        if self._waiting:
            longest = max(self._waiting.values()) * self.word_cycles
            self._ports.unit.charge(max(longest, self._load_cycles))
            self._waiting.clear()
            self._load_cycles = 0

    def word(self, number: int) -> Value:
        total, word = self._words[number], new_tile(self._type)
        if total is not None:
            word.data = narrow(total, word.dtype, "Scatter")
        return word

    def close(self) -> None:
        """End the group and free its bytes."""
        self._ports.on_chip.release(self._ports.unit, self._size_bytes, self._ports.unit.now)
        self._words = []
        self.is_open = False
