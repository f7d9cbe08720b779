"""An independent, cycle-by-cycle model of the paper's hardware description of a SwiGLU layer.

In each cycle, a rule fires at most once, on what its FIFOs held at the start of the cycle. A FIFO
has two slots by default. A full FIFO takes no piece, even in a cycle in which it gives one. A
piece is represented by its stop. Source: anonymous7484/step-artifact-eval, bluespec/src.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

PIECE_BYTES = 1028
REQUEST_BYTES = 512
SETS = 32
PIECES_OF_A_SET = 8
INITIAL_CYCLES = 256
READS_IN_FLIGHT = 64
ANSWERS = 128


class Memory(Protocol):
    def send(self, cycle: int, port: int, address: int, write: bool) -> bool: ...

    def step(self, cycle: int) -> tuple[int, int] | None: ...


@dataclass
class Clock:
    """The cycle that all FIFOs share."""

    cycle: int = 0


@dataclass
class Fifo:
    """A queue that shows its state at the start of a cycle, and logs cycles of puts and takes."""

    clock: Clock
    room: int = 2
    items: deque[Any] = field(default_factory=deque)
    held: int = 0
    put_cycles: list[int] = field(default_factory=list)
    take_cycles: list[int] = field(default_factory=list)

    @property
    def gives(self) -> bool:
        return self.held > 0

    @property
    def takes(self) -> bool:
        return self.held < self.room

    def put(self, item: Any) -> None:
        self.items.append(item)
        self.put_cycles.append(self.clock.cycle)

    def take(self) -> Any:
        self.take_cycles.append(self.clock.cycle)
        return self.items.popleft()


class Design:
    """All FIFOs and rules; ``links`` has the FIFOs at both ends of a stream, by name."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.clock = Clock()
        self.finished: int | None = None
        self.fifos: list[Fifo] = []
        self.rules: list[Callable[[], None]] = []
        self.links: dict[str, tuple[Fifo, Fifo]] = {}
        self.ports: list[tuple[Fifo, Fifo, Fifo]] = []
        self.turn = 0
        self._arbiter()

    @property
    def cycle(self) -> int:
        return self.clock.cycle

    def fifo(self, room: int = 2) -> Fifo:
        self.fifos.append(made := Fifo(self.clock, room))
        return made

    def run(self) -> int:
        while self.finished is None:
            for rule in self.rules:
                rule()
            for fifo in self.fifos:
                fifo.held = len(fifo.items)
            self.clock.cycle += 1
        return self.finished

    # -- the way to the memory and back

    def _arbiter(self) -> None:
        self.chosen = self.fifo()
        self.into = self.fifo()
        self.last = self.fifo()
        self.flying = self.fifo(READS_IN_FLIGHT)
        self.response = self.fifo()
        self.ordered = self.fifo(READS_IN_FLIGHT)
        self.out = self.fifo()
        self.back = self.fifo()
        self.known: set[tuple[int, int]] = set()
        self.rules += [self._choose, self._go_in, self._send, self._answer, self._return]

    def _choose(self) -> None:
        count = len(self.ports)
        for step in range(count):
            number = (self.turn + step) % count
            requests, _, answers = self.ports[number]
            if requests.gives:
                self.turn = (number + 1) % count
                if answers.takes and self.chosen.takes:
                    address, write = requests.take()
                    self.chosen.put((number, address, write))
                return

    def _go_in(self) -> None:
        if self.chosen.gives and self.into.takes:
            self.into.put(self.chosen.take())
        if self.into.gives and self.last.takes:
            number, address, write = self.into.items[0]
            if write or self.flying.takes:
                self.last.put(self.into.take())
                if not write:
                    self.flying.put((number, address))

    def _send(self) -> None:
        if self.last.gives and self.memory.send(self.cycle, *self.last.items[0]):
            self.last.take()

    def _answer(self) -> None:
        if self.response.gives:
            self.ordered.put(self.response.take())
        if (answer := self.memory.step(self.cycle)) is not None:
            self.response.put(answer)

    def _return(self) -> None:
        if self.flying.gives and self.out.takes:
            first = self.flying.items[0]
            if first in list(self.ordered.items)[: self.ordered.held]:
                self.ordered.items.remove(first)
                self.out.put(self.flying.take())
        if self.out.gives and self.back.takes:
            self.back.put(self.out.take())
        if self.back.gives:
            number, address = self.back.take()
            self.ports[number][1].put(address)
        for _, buffer, answers in self.ports:
            if buffer.gives and answers.takes:
                answers.put(buffer.take())

    def port(self) -> tuple[Fifo, Fifo, Fifo]:
        self.ports.append((self.fifo(), self.fifo(ANSWERS), self.fifo(ANSWERS)))
        return self.ports[-1]

    def reader(self, grid: tuple[int, ...]) -> Fifo:
        stops = stops_of(grid)
        requests, _, answers = self.port()
        seen, answered = self.fifo(), self.fifo()
        position = entry = 0

        def ask() -> None:
            nonlocal position
            if position + REQUEST_BYTES < len(stops) * PIECE_BYTES and requests.takes:
                requests.put((position, False))
                position += REQUEST_BYTES

        def see() -> None:
            if answers.gives and seen.takes:
                seen.put(answers.take())

        def give() -> None:
            nonlocal entry
            if not seen.gives:
                return
            reached = seen.items[0] + REQUEST_BYTES
            if reached >= entry * PIECE_BYTES:
                if not answered.takes:
                    return
                answered.put(stops[entry])
                entry += 1
            if reached < entry * PIECE_BYTES:
                seen.take()

        self.rules += [ask, see, give]
        return answered

    def writer(self, source: Fifo, last: int) -> None:
        """Write pieces up to the piece with the stop ``last``."""
        requests, *_ = self.port()
        position = pieces = 0

        def write() -> None:
            nonlocal position, pieces
            if position + REQUEST_BYTES < pieces * PIECE_BYTES:
                if requests.takes:
                    requests.put((position, True))
                    position += REQUEST_BYTES
            elif source.gives:
                pieces += 1
                if source.take() == last:
                    self.finished = self.cycle

        self.rules.append(write)

    # -- operators

    def move(self, name: str, source: Fifo, *targets: Fifo) -> None:
        """Move pieces in cycles in which all targets have room."""
        self.links[name] = source, source if len(targets) > 1 else targets[0]

        def rule() -> None:
            if source.gives and all(target.takes for target in targets):
                piece = source.take()
                for target in targets:
                    target.put(piece)

        self.rules.append(rule)

    def map(self, *inputs: Fifo, promoted: int = 99) -> Fifo:
        """Take a piece of every input; stops of at least ``promoted`` are one level higher."""
        out = self.fifo()

        def rule() -> None:
            if all(each.gives for each in inputs) and out.takes:
                stops = {each.take() for each in inputs}
                assert len(stops) == 1, stops
                stop = stops.pop()
                out.put(stop + (stop >= promoted))

        self.rules.append(rule)
        return out

    def accumulate(self, source: Fifo) -> Fifo:
        out = self.fifo()

        def rule() -> None:
            if source.gives and (source.items[0] < 1 or out.takes):
                stop = source.take()
                if stop:
                    out.put(stop - 1)

        self.rules.append(rule)
        return out

    def repeat(self, source: Fifo, times: int) -> Fifo:
        """Send each token ``times`` times, and drop it in the next cycle."""
        out = self.fifo()
        count = 0

        def rule() -> None:
            nonlocal count
            if not source.gives:
                return
            if count == times:
                source.take()
                count = 0
            elif out.takes:
                token, stop, _ = source.items[0]
                count += 1
                last = count == times
                out.put((token, stop + 1 if last else 0, last))

        self.rules.append(rule)
        return out

    def big_tile(self, source: Fifo, partial: Fifo) -> tuple[Fifo, Fifo]:
        around, out = self.fifo(), self.fifo()
        state = "fill"

        def rule() -> None:
            nonlocal state
            if state == "drain":
                if partial.gives and out.takes:
                    stop = partial.take()
                    out.put(stop - (stop >= 3))
                    if stop >= 3:
                        state = "fill"
            elif source.gives and around.takes and (state == "fill" or partial.gives):
                stop = source.take()
                if state == "accumulate":
                    partial.take()
                around.put(stop)
                if stop >= 3:
                    state = "drain"
                elif stop == 2:
                    state = "accumulate"

        self.rules.append(rule)
        return around, out

    def buffer(self, rank: int) -> Buffer:
        made = Buffer(rank, self.clock, *(self.fifo() for _ in range(4)))
        self.rules.append(made.rule)
        return made

    def buffered(self, name: str, source: Fifo, rank: int, times: int | None) -> Fifo:
        buffer = self.buffer(rank)
        self.move(f"{name}_store.0", source, buffer.pieces)
        if times is None:
            self.move(f"{name}_read.0", buffer.out_tokens, buffer.tokens)
        else:
            again = self.fifo()
            self.move(f"{name}_repeat.0", buffer.out_tokens, again)
            self.move(f"{name}_read.0", self.repeat(again, times), buffer.tokens)
        return buffer.out_pieces

    def moved(self, name: str, source: Fifo) -> Fifo:
        target = self.fifo()
        self.move(name, source, target)
        return target

    def product(self, name: str, left: Fifo, right: Fifo) -> Fifo:
        multiply = f"{name}_product"
        product = self.map(self.moved(f"{multiply}.0", left), self.moved(f"{multiply}.1", right))
        sums = self.accumulate(self.moved(f"{name}_sum.0", product))
        partial = self.fifo()
        around, total = self.big_tile(self.moved(f"{name}_total.0", sums), partial)
        self.move(f"{name}_total.1", self.buffered(f"{name}_partial", around, 2, None), partial)
        return total


class Buffer:
    """32 sets of 8 pieces; a complete token can be read, and a set is free after its last reading.

    A token begins in the last set of the token before it if that set has only one piece left.
    """

    def __init__(
        self,
        rank: int,
        clock: Clock,
        pieces: Fifo,
        tokens: Fifo,
        out_tokens: Fifo,
        out_pieces: Fifo,
    ) -> None:
        self.rank, self.clock = rank, clock
        self.pieces, self.tokens = pieces, tokens
        self.out_tokens, self.out_pieces = out_tokens, out_pieces
        self.free = [True] * SETS
        self.next_free: int | None = None
        self.frame = self.current = 0  # frame 0: no set is begun
        self.stored: dict[int, list[tuple[int, int]]] = {}
        self.storing = 0
        self.loading: tuple[int, int, int, bool] | None = None
        self.forgetting = False

    def rule(self) -> None:
        # Decisions use the state at the start of the cycle.
        if self.clock.cycle < INITIAL_CYCLES:
            return
        had_free, forgets, self.forgetting = self.next_free, self.forgetting, False
        frees = self._read()
        if not forgets and self.pieces.gives and (self.frame or had_free is not None):
            self._store(had_free)
        if had_free is None and any(self.free):
            self.next_free = max(number for number in range(SETS) if self.free[number])
            self.free[self.next_free] = False
        if frees is not None:
            self.free[frees] = True

    def _read(self) -> int | None:
        if self.loading is None:
            if self.tokens.gives:
                token, stop, frees = self.tokens.take()
                self.loading = token, 0, stop, frees
            return None
        if not self.out_pieces.takes:
            return None
        token, at, stop, frees = self.loading
        held = self.stored[token]
        its_set, level = held[at]
        last = at + 1 == len(held)
        self.out_pieces.put(self.rank + stop if last else level)
        self.loading = None if last else (token, at + 1, stop, frees)
        if not frees:
            return None
        if last:
            self.forgetting = True
            del self.stored[token]
        return its_set if last or held[at + 1][0] != its_set else None

    def _store(self, chosen: int | None) -> None:
        stop = self.pieces.items[0]
        ends = stop >= self.rank
        if ends and not self.out_tokens.takes:
            return
        self.pieces.take()
        full = False
        if self.frame:
            full = self.frame + 1 == PIECES_OF_A_SET or ends
        else:
            assert chosen is not None
            self.current, self.next_free = chosen, None
        self.frame = 0 if full else self.frame + 1
        self.stored.setdefault(self.storing, []).append((self.current, stop))
        if ends:
            self.out_tokens.put((self.storing, stop - self.rank, True))
            self.storing += 1


def stops_of(grid: tuple[int, ...]) -> list[int]:
    stops = [0]
    for size in reversed(grid):
        ended = [*stops[:-1], stops[-1] + 1]
        stops = stops * (size - 1) + ended
    return stops


@dataclass
class Sizes:
    """The sizes of the layer, in numbers; a piece has 16 x 16 numbers."""

    batch: int
    hidden: int
    inter: int
    tile_batch: int
    tile_inter: int


def swiglu(sizes: Sizes, memory: Memory) -> Design:
    rows_of, inner_of, cols = sizes.tile_batch // 16, sizes.tile_inter // 16, sizes.hidden // 16
    nb, ni = sizes.batch // sizes.tile_batch, sizes.inter // sizes.tile_inter
    d = Design(memory)
    x = d.reader((1, nb, ni, 1, rows_of, cols))
    gate, up = (d.reader((1, nb, ni, 1, inner_of, cols)) for _ in range(2))
    down = d.reader((1, nb, 1, ni, cols, inner_of))
    copies = d.fifo(), d.fifo()
    d.move("linear_off_chip_load_1_copies.0", x, *copies)
    products = []
    for name, copy, weight in (("matmul_sum_1", copies[0], gate), ("matmul_sum_2", copies[1], up)):
        left = d.buffered(f"{name}_left", copy, 1, inner_of)
        right = d.buffered(f"{name}_right", weight, 2, rows_of)
        products.append(d.product(name, left, right))
    silu = d.map(d.moved("silu_1.0", products[0]))
    gated = d.map(d.moved("mul_1.0", silu), d.moved("mul_1.1", products[1]))
    promoted = d.map(d.moved("reshape_1.0", gated), promoted=3)
    left = d.buffered("matmul_sum_3_right", down, 1, rows_of)
    right = d.buffered("matmul_sum_3_left", promoted, 2, cols)
    d.writer(d.product("matmul_sum_3", left, right), 5)
    return d


class IdealMemory:
    """Starts a request every two cycles. Reads take 30 cycles, and are answered in order."""

    def __init__(self) -> None:
        self.free = 0
        self.due: deque[tuple[int, int, int]] = deque()

    def send(self, cycle: int, port: int, address: int, write: bool) -> bool:
        start = max(cycle, self.free)
        self.free = start + 2
        if not write:
            self.due.append((start + 29, port, address))
        return True

    def step(self, cycle: int) -> tuple[int, int] | None:
        if self.due and self.due[0][0] <= cycle:
            return self.due.popleft()[1:]
        return None
