"""An operator's behaviour as states and transitions, found by running its ``run``.

A state has the element or end that the operator waits for, the memory that it stated at the end of
its last turn, and the elements since that turn. Operators of equal behaviour share one automaton.
The compiled loop reads the tables of all automata.
"""

from __future__ import annotations

from collections.abc import Coroutine, Hashable
from typing import TYPE_CHECKING, Final

from fabric.messages.users_code import pass_signals
from fabric.timing.compiled import world as c
from fabric.timing.compiled.codes import Codes, UnfitError
from fabric.timing.compiled.kernel import entry_of
from fabric.timing.compiled.stand_ins import Awaited, Recording, recorded_ports
from fabric.timing.compiled.world import GrowingTable
from fabric.timing.engine.tables import Table

if TYPE_CHECKING:
    from fabric.graph.wiring.operator import Operator
    from fabric.timing.engine.ports import Ports

_LONGEST_TURN: Final = 4096
"""The most elements of a turn. Each element of a turn needs a state of its own."""


class Automaton:
    """The behaviour of an operator in timing mode.

    Attributes:
        first_state: the state after ``first_stretch``.
        first_stretch: range of the operations before the first element.
        awaited: by state, the element or end that the operator waits for.
        source: an operator that has this behaviour, and its ports; None between runs.
    """

    def __init__(self, operator: Operator, ports: Ports, tables: Tables) -> None:
        """Run ``operator`` up to its first element; raise UnfitError if it cannot be recorded."""
        self.source: tuple[Operator, Ports] | None = operator, ports
        self._tables: Final = tables
        self.carries_numbers: Final = bool(operator.carries_numbers)
        self._numbers: dict[object, int] = {}
        self._reached: dict[int, tuple[int, int] | None] = {}
        self._keys: dict[int, tuple[object, tuple[int, ...]]] = {}
        self.awaited: Final[dict[int, Awaited]] = {}
        self._live: dict[int, _Run] = {}
        run = _Run(operator, ports, tables.codes)
        awaited, operations = run.send(None)
        self.first_stretch = tables.add_operations(operations)
        self.first_state = self._state(run, awaited, None, ((), ()))

    def find_transition(self, state: int, code: int) -> None:
        """Add the transition for ``code`` in ``state``; raise UnfitError if that is impossible."""
        run = self._live.pop(state, None) or self._replayed(state)
        awaited, operations = run.hand(self.awaited[state], code)
        self._tables.steps += 1
        after = self._state(run, awaited, (state, code), self._keys[state])
        self._tables.add_transition(state, code, operations, after)

    def close(self) -> None:
        """Close all coroutines, and release the operator and its machine."""
        self.source = None
        for run in self._live.values():
            run.close()
        self._live.clear()

    def _state(
        self,
        run: _Run,
        awaited: Awaited,
        reached: tuple[int, int] | None,
        before: tuple[object, tuple[int, ...]],
    ) -> int:
        memory, codes = before
        kept = run.turned()
        if kept is not None:
            memory, codes = kept, ()
        elif reached is not None:
            codes = (*codes, reached[1])
        if len(codes) > _LONGEST_TURN:
            raise UnfitError
        key = (memory, codes, awaited)
        try:
            number = self._numbers.get(key)
        except TypeError as error:
            raise UnfitError from error
        if number is None:
            carries = self.carries_numbers and awaited.kind == c.PEEK
            number = self._tables.add_state(awaited.kind, awaited.port, carries=carries)
            self._numbers[key] = number
            self._reached[number] = reached
            self._keys[number] = memory, codes
            self.awaited[number] = awaited
        if awaited.kind in (c.PEEK, c.POP):
            old = self._live.pop(number, None)
            if old is not None:
                old.close()
            self._live[number] = run
        else:
            run.close()
        return number

    def _replayed(self, state: int) -> _Run:
        """Return a run in ``state``: a kept run, or a new run that receives all elements again."""
        path: list[tuple[int, int]] = []
        run, step = None, self._reached[state]
        while step is not None and run is None:
            path.append(step)
            run = self._live.pop(step[0], None)
            step = self._reached[step[0]]
        if run is None:
            assert self.source is not None
            run = _Run(*self.source, self._tables.codes)
            run.send(None)
            run.turned()
        for before, code in reversed(path):
            run.hand(self.awaited[before], code)
            # Clock readings are numbered from the start of each turn.
            run.turned()
        self._tables.steps += len(path)
        return run


class _Run:
    def __init__(self, operator: Operator, ports: Ports, codes: Codes) -> None:
        self._recording = Recording(codes)
        self._codes = codes
        self._carries = operator.carries_numbers
        self._coroutine: Coroutine[Awaited, object, None] = operator.run(
            recorded_ports(self._recording, ports)
        )
        self.turned, self.close = self._recording.turned, self._coroutine.close

    def hand(self, awaited: Awaited, code: int) -> tuple[Awaited, list[list[int]]]:
        if awaited.kind == c.POP:
            return self.send(code)
        if self._carries:
            return self.send(self._codes.opaque(code, awaited.port))
        return self.send(self._codes.element(code))

    def send(self, answer: object) -> tuple[Awaited, list[list[int]]]:
        try:
            awaited = self._coroutine.send(answer)
        except StopIteration:
            awaited = Awaited(c.END)
        except BaseException as error:
            pass_signals(error)
            raise UnfitError from error
        return awaited, self._recording.stretch()


_KNOWN: Final = 1 << 14
"""Initial room for transitions. Rehashing them takes as long as finding them."""

_MOST_KEPT: Final = 1 << 15
"""Tables are kept for the next run if their transitions and kinds are fewer in all."""

_kept: Final[list[Tables]] = []
"""Tables of ended runs. A run that begins takes the latest."""


class Tables:
    """States, transitions and operations of all automata of a run.

    The next run of the process continues with the tables, if it has operators of equal behaviour.

    Attributes:
        automata: by the operators' key; None if the behaviour cannot be recorded.
        known: transitions, hashed by state and code.
        steps: number of elements handed to operators in this run while finding transitions.
    """

    def __init__(self) -> None:
        self.codes: Final = Codes()
        self.automata: Final[dict[Hashable, Automaton | None]] = {}
        self.states: Final = GrowingTable(c.StateRow)
        self.transitions: Final = GrowingTable(c.Transition)
        self.operations: Final = GrowingTable(c.Operation, 1024)
        self.steps = 0
        self.known = Table.zeros(c.Known, _KNOWN)

    @classmethod
    def take(cls) -> Tables:
        """Return the tables that the latest run has kept, or new ones."""
        try:
            tables = _kept.pop()
        except IndexError:
            tables = cls()
        tables.steps = 0
        return tables

    def keep(self) -> None:
        """Keep the tables for the next run, unless they are large."""
        if self.transitions.count + self.codes.kinds.count < _MOST_KEPT:
            _kept.append(self)

    def automaton(self, key: Hashable, operator: Operator, ports: Ports) -> Automaton | None:
        """Return the automaton of ``operator``; None if its behaviour cannot be recorded.

        Operators of equal behaviour have the same ``key`` in all runs. None is never shared.
        """
        automaton = self.automata.get(key)
        if automaton is not None:
            automaton.source = operator, ports
        elif key not in self.automata:
            try:
                automaton = Automaton(operator, ports, self)
            except (UnfitError, OverflowError):
                automaton = None
            if key is not None:
                self.automata[key] = automaton
        return automaton

    def add_state(self, kind: int, port: int, *, carries: bool) -> int:
        return self.states.extend([[kind, port, int(carries), 0, -1]])

    def add_operations(self, operations: list[list[int]]) -> tuple[int, int]:
        start = self.operations.extend(operations)
        return start, start + len(operations)

    def add_transition(
        self, state: int, code: int, operations: list[list[int]], after: int
    ) -> None:
        start, stop = self.add_operations(operations)
        number = self.transitions.extend([[start, stop, after]])
        table = self.known
        if 2 * self.transitions.count > table.size:
            self.known = Table.zeros(c.Known, 2 * table.size)
            for entry in table.rows[table.rows["follower"] != 0].tolist():
                self._put(*entry)
        self._put(state + 1, code, number)

    def _put(self, follower: int, code: int, transition: int) -> None:
        rows, entries = self.known.rows, self.known.size
        at = entry_of(follower - 1, code, entries)
        while rows["follower"][at]:
            at = (at + 1) & (entries - 1)
        rows[at] = follower, code, transition
