"""The paper's hardware description of a SwiGLU layer, cycle by cycle, in code of its own.

Rules fire at most once a cycle, on what their FIFOs held at its start. A FIFO has two slots unless
said, and takes nothing while it is full, even if it gives. A piece is its stop; see ``hdl.md``'s
source: anonymous7484/step-artifact-eval, bluespec/src.
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
    """What is behind the arbiter's FIFOs."""

    def send(self, cycle: int, port: int, address: int, write: bool) -> bool:
        """Take a request, if there is room."""

    def answers(self, cycle: int) -> list[tuple[int, int]]:
        """Return the reads that are answered in this cycle, at most one."""


@dataclass
class Fifo:
    """A queue that sees the start of a cycle."""

    room: int = 2
    items: deque[Any] = field(default_factory=deque)
    held: int = 0
    first_in: list[int] = field(default_factory=list)

    @property
    def gives(self) -> bool:
        return self.held > 0

    @property
    def takes(self) -> bool:
        return self.held < self.room


class Design:
    """All FIFOs and rules; ``log`` has the cycles in which each stream's pieces moved."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.cycle = 0
        self.finished: int | None = None
        self.fifos: list[Fifo] = []
        self.rules: list[Callable[[], None]] = []
        self.log: dict[str, list[int]] = {}
        self.ports: list[tuple[Fifo, Fifo, Fifo]] = []
        self.turn = 0
        self._arbiter()

    def fifo(self, room: int = 2) -> Fifo:
        self.fifos.append(made := Fifo(room))
        return made

    def run(self) -> int:
        while self.finished is None:
            for rule in self.rules:
                rule()
            for fifo in self.fifos:
                fifo.held = len(fifo.items)
            self.cycle += 1
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
                    address, write = requests.items.popleft()
                    self.chosen.items.append((number, address, write))
                return

    def _go_in(self) -> None:
        if self.chosen.gives and self.into.takes:
            self.into.items.append(self.chosen.items.popleft())
        if self.into.gives and self.last.takes:
            number, address, write = self.into.items[0]
            if write or self.flying.takes:
                self.last.items.append(self.into.items.popleft())
                if not write:
                    self.flying.items.append((number, address))

    def _send(self) -> None:
        if self.last.gives and self.cycle:
            if self.memory.send(self.cycle, *self.last.items[0]):
                self.last.items.popleft()

    def _answer(self) -> None:
        if self.response.gives:
            self.ordered.items.append(self.response.items.popleft())
        if self.response.takes:
            self.response.items += self.memory.answers(self.cycle)

    def _return(self) -> None:
        if self.flying.gives and self.out.takes:
            first = self.flying.items[0]
            if first in list(self.ordered.items)[: self.ordered.held]:
                self.ordered.items.remove(first)
                self.out.items.append(self.flying.items.popleft())
        if self.out.gives and self.back.takes:
            self.back.items.append(self.out.items.popleft())
        if self.back.gives:
            number, address = self.back.items.popleft()
            self.ports[number][1].items.append(address)
        for _, buffer, answers in self.ports:
            if buffer.gives and answers.takes:
                answers.items.append(buffer.items.popleft())

    def port(self) -> tuple[Fifo, Fifo, Fifo]:
        self.ports.append((self.fifo(), self.fifo(ANSWERS), self.fifo(ANSWERS)))
        return self.ports[-1]

    def reader(self, grid: tuple[int, ...]) -> Fifo:
        stops = stops_of(grid)
        requests, _, answers = self.port()
        seen, given = self.fifo(), self.fifo()
        position = entry = 0

        def ask() -> None:
            nonlocal position
            if position + REQUEST_BYTES < len(stops) * PIECE_BYTES and requests.takes:
                requests.items.append((position, False))
                position += REQUEST_BYTES

        def see() -> None:
            if answers.gives and seen.takes:
                seen.items.append(answers.items.popleft())

        def give() -> None:
            nonlocal entry
            if not seen.gives:
                return
            reached = seen.items[0] + REQUEST_BYTES
            if reached >= entry * PIECE_BYTES:
                if not given.takes:
                    return
                given.items.append(stops[entry])
                entry += 1
            if reached < entry * PIECE_BYTES:
                seen.items.popleft()

        self.rules += [ask, see, give]
        return given

    def writer(self, source: Fifo, last: int) -> None:
        requests, *_ = self.port()
        position = pieces = 0

        def write() -> None:
            nonlocal position, pieces
            if position + REQUEST_BYTES < pieces * PIECE_BYTES:
                if requests.takes:
                    requests.items.append((position, True))
                    position += REQUEST_BYTES
            elif source.gives:
                pieces += 1
                if source.items.popleft() == last:
                    self.finished = self.cycle

        self.rules.append(write)

    # -- operators

    def move(self, name: str, source: Fifo, *targets: Fifo) -> None:
        log = self.log.setdefault(name, [])

        def rule() -> None:
            if source.gives and all(target.takes for target in targets):
                piece = source.items.popleft()
                for target in targets:
                    target.items.append(piece)
                log.append(self.cycle)

        self.rules.append(rule)

    def map(self, *inputs: Fifo, promoted: int = 99) -> Fifo:
        out = self.fifo()

        def rule() -> None:
            if all(each.gives for each in inputs) and out.takes:
                stops = {each.items.popleft() for each in inputs}
                assert len(stops) == 1, stops
                stop = stops.pop()
                out.items.append(stop + (stop >= promoted))

        self.rules.append(rule)
        return out

    def accumulate(self, source: Fifo) -> Fifo:
        out = self.fifo()

        def rule() -> None:
            if source.gives and (source.items[0] < 1 or out.takes):
                stop = source.items.popleft()
                if stop:
                    out.items.append(stop - 1)

        self.rules.append(rule)
        return out

    def repeat(self, source: Fifo, times: int) -> Fifo:
        out = self.fifo()
        count = 0

        def rule() -> None:
            nonlocal count
            if not source.gives:
                return
            if count == times:
                source.items.popleft()
                count = 0
            elif out.takes:
                token, stop, _ = source.items[0]
                count += 1
                last = count == times
                out.items.append((token, stop + 1 if last else 0, last))

        self.rules.append(rule)
        return out

    def big_tile(self, source: Fifo, partial: Fifo) -> tuple[Fifo, Fifo]:
        around, out = self.fifo(), self.fifo()
        state = "fill"

        def rule() -> None:
            nonlocal state
            if state == "drain":
                if partial.gives and out.takes:
                    stop = partial.items.popleft()
                    out.items.append(stop - (stop >= 3))
                    if stop >= 3:
                        state = "fill"
            elif source.gives and around.takes and (state == "fill" or partial.gives):
                stop = source.items.popleft()
                if state == "accumulate":
                    partial.items.popleft()
                around.items.append(stop)
                if stop >= 3:
                    state = "drain"
                elif stop == 2:
                    state = "accumulate"

        self.rules.append(rule)
        return around, out

    def buffer(self, rank: int) -> tuple[Fifo, Fifo, Fifo, Fifo]:
        """Return what takes pieces and tokens, and what gives tokens and pieces."""
        pieces, tokens = self.fifo(), self.fifo()
        out_tokens, out_pieces = self.fifo(), self.fifo()
        free = [True] * SETS
        next_free: int | None = None
        frame = current = 0  # frame 0: no set is begun
        stored: dict[int, list[tuple[int, int]]] = {}
        storing = 0
        loading: tuple[int, int, int, bool] | None = None  # token, piece, stop, whether it frees
        forgetting = False

        def rule() -> None:
            nonlocal next_free, frame, current, storing, loading, forgetting
            if self.cycle < INITIAL_CYCLES:
                return
            had_free, had_loading, forgets = next_free, loading, forgetting
            frees: int | None = None
            forgetting = False
            if had_loading is not None and not forgets and out_pieces.takes:
                token, at, stop, dealloc = had_loading
                held = stored[token]
                its_set, level = held[at]
                last = at + 1 == len(held)
                out_pieces.items.append(rank + stop if last else level)
                if dealloc and (last or held[at + 1][0] != its_set):
                    frees = its_set
                loading = None if last else (token, at + 1, stop, dealloc)
                if last and dealloc:
                    forgetting = True
                    del stored[token]
            elif had_loading is None and tokens.gives:
                token, stop, dealloc = tokens.items.popleft()
                loading = (token, 0, stop, dealloc)
            if not forgets and pieces.gives and (frame or had_free is not None):
                stop = pieces.items[0]
                emits = stop >= rank
                if not emits or out_tokens.takes:
                    pieces.items.popleft()
                    if not frame:
                        assert had_free is not None
                        current, next_free, full = had_free, None, False
                    else:
                        full = frame + 1 == PIECES_OF_A_SET or emits
                    frame = 0 if full else frame + 1
                    stored.setdefault(storing, []).append((current, stop))
                    if emits:
                        out_tokens.items.append((storing, stop - rank, True))
                        storing += 1
            if had_free is None and any(free):
                next_free = max(number for number in range(SETS) if free[number])
                free[next_free] = False
            if frees is not None:
                free[frees] = True

        self.rules.append(rule)
        return pieces, tokens, out_tokens, out_pieces

    def buffered(self, name: str, source: Fifo, rank: int, times: int | None) -> Fifo:
        """Move ``source`` into a buffer; return its pieces, each token so often."""
        pieces, tokens, out_tokens, out = self.buffer(rank)
        self.move(f"{name}.in", source, pieces)
        if times is None:
            self.move(f"{name}.token", out_tokens, tokens)
        else:
            again = self.fifo()
            self.move(f"{name}.token", out_tokens, again)
            self.move(f"{name}.repeat", self.repeat(again, times), tokens)
        return out

    def moved(self, name: str, source: Fifo) -> Fifo:
        target = self.fifo()
        self.move(name, source, target)
        return target

    def product(self, name: str, left: Fifo, right: Fifo) -> Fifo:
        """Multiply, accumulate over pieces and then over tiles; return the sums."""
        product = self.map(self.moved(f"{name}.left", left), self.moved(f"{name}.right", right))
        sums = self.accumulate(self.moved(f"{name}.product", product))
        partial = self.fifo()
        around, total = self.big_tile(self.moved(f"{name}.sum", sums), partial)
        self.move(f"{name}.partial", self.buffered(f"{name}.around", around, 2, None), partial)
        return total


def stops_of(grid: tuple[int, ...]) -> list[int]:
    """Return how many dimensions end with each piece."""
    stops = [0]
    for size in reversed(grid):
        ended = [*stops[:-1], stops[-1] + 1]
        stops = stops * (size - 1) + ended
    return stops


@dataclass
class Sizes:
    """Of the layer, in numbers; pieces have 16 x 16."""

    batch: int
    hidden: int
    inter: int
    tile_batch: int
    tile_inter: int


def swiglu(sizes: Sizes, memory: Memory) -> Design:
    """Return the layer."""
    rows_of, inner_of, cols = sizes.tile_batch // 16, sizes.tile_inter // 16, sizes.hidden // 16
    nb, ni = sizes.batch // sizes.tile_batch, sizes.inter // sizes.tile_inter
    d = Design(memory)
    x = d.reader((1, nb, ni, 1, rows_of, cols))
    gate, up = (d.reader((1, nb, ni, 1, inner_of, cols)) for _ in range(2))
    down = d.reader((1, nb, 1, ni, cols, inner_of))
    copies = d.fifo(), d.fifo()
    d.move("x", x, *copies)
    products = []
    for name, copy, weight in (("gate", copies[0], gate), ("up", copies[1], up)):
        left = d.buffered(f"{name}.x", copy, 1, inner_of)
        right = d.buffered(f"{name}.w", weight, 2, rows_of)
        products.append(d.product(name, left, right))
    silu = d.map(d.moved("silu", products[0]))
    gated = d.map(d.moved("mul.silu", silu), d.moved("mul.up", products[1]))
    promoted = d.map(d.moved("promote", gated), promoted=3)
    left = d.buffered("down.w", down, 1, rows_of)
    right = d.buffered("down.gated", promoted, 2, cols)
    d.writer(d.product("down", left, right), 5)
    return d


class IdealMemory:
    """Starts a request every two cycles and answers reads thirty cycles later, in order."""

    def __init__(self, latency: int = 30, slack: int = 0) -> None:
        self.free = 0
        self.due: deque[tuple[int, int, int]] = deque()
        self.latency = latency

    def send(self, cycle: int, port: int, address: int, write: bool) -> bool:
        start = max(cycle, self.free)
        self.free = start + 2
        if not write:
            self.due.append((start + self.latency, port, address))
        return True

    def answers(self, cycle: int) -> list[tuple[int, int]]:
        if self.due and self.due[0][0] <= cycle:
            _, port, address = self.due.popleft()
            return [(port, address)]
        return []
