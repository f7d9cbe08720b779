"""The prompt of a held run, and the points at which a run is held: cycles and elements."""

from __future__ import annotations

import cmd
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from typing_extensions import override

from fabric.analysis.trace.channel_rows import channels_table
from fabric.display.parts import Block, Rows, Sheet, line
from fabric.display.terminal import printed_sheet
from fabric.graph.values.value import BufferReference, Tile
from fabric.messages.causes import COUNTED, Cause
from fabric.messages.errors import ConfigurationError, FabricError
from fabric.messages.output import PIPED_COLUMNS, print_text
from fabric.messages.text import visible
from fabric.runs.counters import unit_counters
from fabric.timing.machine.terminations import was_terminated
from fabric.timing.state.run_state import open_waits

if TYPE_CHECKING:
    from fabric.runs.stepped import SteppedRun
    from fabric.timing.state.run_state import OpenWait, RunState, UnitState

_HELP: Final = """\
where               the activity of every unit in this cycle
unit NAME           a unit: its wait, its cycles and its channels
channel             all channels, the fullest first
channel NAME        a channel, OPERATOR.INPUT, and its elements
tile CHANNEL [N]    the value of element N, by default the oldest
step [N]            continue to the next cycle in which data move, N times
go CYCLE            continue to a cycle
go UNIT:ELEMENT     continue until a unit takes this number of elements from its
                    first input, or from another one with UNIT.INPUT:ELEMENT
go                  continue to the end, and print the report
quit                abandon the run
Ctrl-C holds a running run; Ctrl-D continues to its end.
"""


class Prompt(cmd.Cmd):
    """Reads commands about a held run. If ``left`` is true, the user abandoned the run."""

    def __init__(self, run: SteppedRun) -> None:
        super().__init__()
        self.left = False
        self._run: Final = run
        self._asks: Final = sys.stdin.isatty()
        self.use_rawinput = self._asks
        self.prompt = ""
        self._place()

    def ask(self, reached: str) -> None:
        self._say_where(reached)
        while True:
            try:
                self.cmdloop()
            except KeyboardInterrupt:
                if self._run.closed or was_terminated():
                    raise
                print_text(f"\nheld at cycle {self._run.cycle:,}; quit leaves\n")
                self._place()
            else:
                return

    def _place(self) -> None:
        # Input that is not a terminal gets no prompt.
        self.prompt = f"(cycle {self._run.cycle:,}) " if self._asks else ""

    def _say_where(self, reached: str = "") -> None:
        run = self._run
        end = ", its end" if run.over else ""
        end += reached and f": {reached}"
        print_text(f"{run.state.program} is held at cycle {run.cycle:,}{end}\n")

    @override
    def onecmd(self, line: str) -> bool:
        try:
            return super().onecmd(line)
        except FabricError as error:
            print_text(f"{error.message}\n")
            return False
        finally:
            self._place()

    @override
    def emptyline(self) -> bool:
        return False

    @override
    def default(self, line: str) -> None:
        print_text(f"{line.split(maxsplit=1)[0]!r}: expected one of {', '.join(_COMMANDS)}\n")

    @override
    def completenames(self, text: str, *_: object) -> list[str]:
        return [name for name in _COMMANDS if name.startswith(text)]

    @override
    def do_help(self, arg: str) -> None:
        print_text(_HELP)

    def do_where(self, _: str) -> None:
        _print(where_sheet(self._run))

    def do_unit(self, name: str) -> None:
        if not name:
            print_text(f"unit: expected its name, such as unit {self._run.state.units[0].name}\n")
            return
        _print(unit_sheet(self._run, name))

    def do_channel(self, name: str) -> None:
        _print(channel_sheet(self._run, name) if name else channels_sheet(self._run))

    def do_tile(self, arguments: str) -> None:
        if not arguments:
            print_text("tile: expected the channel that holds it, such as tile matmul_1.0\n")
            return
        name, _, number = arguments.rpartition(" ")
        if not name or not number.isdecimal():
            name, number = arguments, ""
        _print(tile_sheet(self._run, name.strip(), int(number) if number else None))

    def do_step(self, count: str) -> None:
        if count and not (count.isdecimal() and len(count) < 18 and int(count)):
            print_text(f"step {count}: expected a number of steps, such as step 10\n")
            return
        self._run.step(int(count or 1))
        self._say_where()

    def do_go(self, where: str) -> bool:
        if not where:
            if self._asks:
                # Held again in its last cycle, so that Ctrl-C can hold it earlier.
                self._run.until(cycle=_NEVER)
            return True
        self._say_where(Break.parse(where).go(self._run))
        return False

    def do_quit(self, _: str) -> bool:
        self.left = True
        return True

    def do_EOF(self, _: str) -> bool:  # noqa: N802 - the name that cmd calls at the end of input
        if self._asks:
            print_text("\n")
        return True


def _print(sheet: Sheet) -> None:
    print_text(printed_sheet(sheet))


_NEVER: Final = 1 << 62
_COMMANDS: Final = ("where", "unit", "channel", "tile", "step", "go", "quit", "help")
_ROWS: Final = 30
_UNIT: Final = ("unit", "since", "wired at", "is")


def where_sheet(run: SteppedRun) -> Sheet:
    """Yield the activity of units: busy units, then waiting units, the latest first."""
    state = run.state
    waits = open_waits(state)
    active = [unit for unit in state.units if not unit.finished]
    active.sort(key=lambda unit: (unit.wait is not None, -unit.cycle))
    waiting = state.waiting
    ended = len(state.units) - len(active)
    yield line(
        f"cycle {run.cycle:,}; units: {len(active) - waiting:,} busy, {waiting:,} waiting, "
        f"{ended:,} ended; elements: {state.elements:,} taken, "
        f"{sum(channel.held for channel in state.channels):,} held"
    )
    rows = [_unit_row(state, unit, waits[unit.number]) for unit in active]
    if rows:
        yield Rows(_UNIT, rows, _ROWS)


def unit_sheet(run: SteppedRun, name: str) -> Sheet:
    unit, state = run.unit(name), run.state
    wait = open_waits(state)[unit.number]
    yield Rows(_UNIT, [_unit_row(state, unit, wait)])
    counters = unit_counters(state)[unit.number]
    spent = [(cause.label, getattr(counters, cause.column)) for cause in (*COUNTED, Cause.IDLE)]
    cycles = ", ".join(f"{cause} {cycles:,}" for cause, cycles in spent if cycles)
    yield line(f"cycles: {cycles or 'none so far'}")
    own = [each for each in state.channels if unit.number in (each.producer, each.consumer)]
    yield channels_table(own, _ROWS)


def channel_sheet(run: SteppedRun, name: str) -> Sheet:
    channel, held = run.channel(name), run.held(name)
    yield channels_table([channel])
    if channel.closed_cycle is not None:
        yield line(f"its stream ended at cycle {channel.closed_cycle:,}")
    if held:
        rows = [
            (
                str(each.number),
                visible(repr(each.value)),
                each.stop,
                each.sent_cycle,
                "on links" if each.visible_cycle is None else each.visible_cycle,
            )
            for each in held
        ]
        titles = ("element", "value", "stop", "sent", "visible")
        yield Rows(titles, rows, _ROWS)


def channels_sheet(run: SteppedRun) -> Sheet:
    fullest = sorted(run.state.channels, key=lambda each: -each.held)
    yield channels_table(fullest, _ROWS)


def tile_sheet(run: SteppedRun, name: str, number: int | None) -> Sheet:
    """Yield an element of a channel, by default the oldest, with data if it has any."""
    held = run.held(name)
    elements = [each for each in held if number in (None, each.number)]
    if not elements:
        numbers = ", ".join(str(each.number) for each in held[:_ROWS])
        raise ConfigurationError(
            f"{name} holds no element{'' if number is None else f' {number}'}: expected "
            + (f"one of {numbers}" if held else "a channel that holds one")
        )
    value = elements[0].value
    yield line(f"element {elements[0].number}: {visible(repr(value))}")
    tiles = [value]
    if isinstance(value, BufferReference):
        tiles = [tile for tile, _ in value.elements]
    for tile in tiles[:_ROWS]:
        if isinstance(tile, Tile):
            if tile.data is None:
                yield line("no data in timing mode")
                continue
            # Users' element types are printed as float32.
            floats = tile.data.dtype.kind not in "iub"
            yield _array(tile.data.astype(np.float32) if floats else tile.data)


def _array(numbers: np.ndarray) -> Block:
    return Block(
        lambda columns: np.array2string(numbers, columns or PIPED_COLUMNS, precision=4).split("\n")
    )


def _unit_row(
    state: RunState, unit: UnitState, wait: OpenWait | None
) -> tuple[str, int | None, str, str]:
    name = visible(unit.name)
    place = f"{Path(unit.place.file).name}:{unit.place.line}"
    if unit.finished:
        return name, unit.cycle, place, "idle, at its end"
    if unit.wait is not None and wait is None:
        return name, unit.cycle, place, "waits for its turn"
    if wait is None or unit.wait is None:
        return name, None, place, Cause.BUSY.label
    awaited = wait.cause.awaits
    peers = [
        each.producer if wait.cause.peer == "producer" else each.consumer
        for each in (state.channels[number] for number in unit.wait.channels)
    ]
    if peers:
        awaited = " or ".join(visible(state.units[peer].name) for peer in peers[:3])
        awaited += f" or {len(peers) - 3} more" if len(peers) > 3 else ""
    return name, wait.since_cycle, place, f"{wait.cause.label}, waits for {awaited}"


class Break(NamedTuple):
    """A cycle, or (with ``unit``) the number of an element that the unit takes or sends."""

    unit: str | None
    number: int

    @staticmethod
    def parse(text: str) -> Break:
        """Read a cycle, also with commas, or ``UNIT:ELEMENT``."""
        unit, colon, last = text.strip().rpartition(":")
        digits = last.replace(",", "")
        # Python refuses to parse thousands of digits.
        readable = digits.isdecimal() and len(digits) <= 18
        if not readable or (colon and not (unit and int(digits))):
            raise ConfigurationError(
                f"{text.strip()!r}: expected CYCLE or UNIT:ELEMENT, such as 1000 or matmul_1:3"
            )
        return Break(unit if colon else None, int(digits))

    def go(self, run: SteppedRun) -> str:
        """Advance ``run``, and return a description of the element (empty for a cycle)."""
        if self.unit is None:
            run.until(cycle=self.number)
            return ""
        run.until(unit=self.unit, element=self.number)
        unit, number = visible(self.unit), f"{self.number:,}"
        channel = _counting_channel(run.state, self.unit)
        if channel is None:
            return f"{unit} sends element {number}"
        producer, _, key = visible(channel).partition(" -> ")
        unit, _, port = key.rpartition(".")
        return f"{unit} takes element {number} from its input {port}, {producer}"


def _counting_channel(state: RunState, unit: str) -> str | None:
    # The unit's first or named input; None if the unit has no inputs, and sent elements count.
    reader = next((each for each in state.units if each.name == unit), None)
    if reader is None:
        return next(each.name for each in state.channels if each.name.endswith(f" -> {unit}"))
    read = [each.name for each in state.channels if each.consumer == reader.number]
    return min(read, key=lambda name: int(name.rpartition(".")[2]), default=None)
