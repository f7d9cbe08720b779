from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

T = TypeVar("T")
Values = tuple[int, ...]


@dataclass(frozen=True)
class Process:
    steps: tuple[str, ...]
    loop_to: int | None
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class Outcome:
    """A final state: whether all processes ended, and elements held by and sent to each channel."""

    completed: bool
    held: tuple[int, ...]
    sent: tuple[int, ...]


class _State(NamedTuple):
    places: tuple[int, ...]
    hands: tuple[int, ...]
    rows: tuple[Values, ...]
    sent: tuple[int, ...]


def outcomes(
    processes: Sequence[Process], depths: Sequence[int | None], *, limit: int
) -> set[Outcome] | None:
    return _Walk(processes, depths).run(limit)


class _Walk:
    def __init__(self, processes: Sequence[Process], depths: Sequence[int | None]) -> None:
        self._processes = processes
        self._depths = depths
        self._reader = {channel: p for p, each in enumerate(processes) for channel in each.inputs}
        self._writer = {channel: p for p, each in enumerate(processes) for channel in each.outputs}

    def run(self, limit: int) -> set[Outcome] | None:
        count, channels = len(self._processes), len(self._depths)
        start = _State((0,) * count, (0,) * count, ((),) * channels, (0,) * channels)
        seen = {start}
        ahead = [start]
        finals = set()
        while ahead:
            state = ahead.pop()
            following = [
                after
                for number in range(count)
                if state.places[number] >= 0
                for after in self._moves(state, number)
            ]
            if not following:
                completed = all(place < 0 for place in state.places)
                finals.add(Outcome(completed, tuple(map(len, state.rows)), state.sent))
            for after in following:
                if after not in seen:
                    seen.add(after)
                    ahead.append(after)
            if len(seen) > limit:
                return None
        return finals

    def _moves(self, state: _State, number: int) -> Iterator[_State]:
        process = self._processes[number]
        place = state.places[number]
        if place == len(process.steps):
            yield self._ended(state, number)
            return
        step, hand = process.steps[place], state.hands[number]
        if step == "first":
            yield from self._choices(state, number, process)
        elif step == "all":
            if all(self._has_room(state, channel) for channel in process.outputs):
                for channel in process.outputs:
                    state = self._put(state, channel, hand)
                yield self._next(state, number, hand)
        elif step in {"take", "keep"} or step[0] == "r":
            yield from self._takes(state, number, step)
        else:
            channel = process.outputs[hand if step == "to" else int(step[1:])]
            if self._has_room(state, channel):
                after = self._put(state, channel, hand if step[0] == "S" else 0)
                yield self._next(after, number, hand)

    def _takes(self, state: _State, number: int, step: str) -> Iterator[_State]:
        hand = state.hands[number]
        port = hand if step == "take" else 0 if step == "keep" else int(step[1:])
        channel = self._processes[number].inputs[port]
        row = state.rows[channel]
        if row:
            kept = row[0] if step in {"keep", "r1"} else hand
            rows = _with(state.rows, channel, row[1:])
            yield self._next(_State(state.places, state.hands, rows, state.sent), number, kept)
        elif state.places[self._writer[channel]] < 0:
            yield self._ended(state, number)

    def _choices(self, state: _State, number: int, process: Process) -> Iterator[_State]:
        """Yield a state for each input that holds a value, or the end if all writers have ended."""
        waiting = False
        for port, channel in enumerate(process.inputs):
            if state.rows[channel]:
                yield self._next(state, number, port)
            waiting |= bool(state.rows[channel]) or state.places[self._writer[channel]] >= 0
        if not waiting:
            yield self._ended(state, number)

    def _has_room(self, state: _State, channel: int) -> bool:
        depth = self._depths[channel]
        return depth is None or len(state.rows[channel]) < depth

    def _put(self, state: _State, channel: int, value: int) -> _State:
        """Send a value, which is lost if the reader has ended."""
        rows = state.rows
        if state.places[self._reader[channel]] >= 0:
            rows = _with(rows, channel, (*rows[channel], value))
        sent = _with(state.sent, channel, state.sent[channel] + 1)
        return _State(state.places, state.hands, rows, sent)

    def _next(self, state: _State, number: int, hand: int) -> _State:
        process = self._processes[number]
        place = state.places[number] + 1
        if place == len(process.steps) and process.loop_to is not None:
            place = process.loop_to
        places = _with(state.places, number, place)
        hands = _with(state.hands, number, hand) if hand != state.hands[number] else state.hands
        return _State(places, hands, state.rows, state.sent)

    def _ended(self, state: _State, number: int) -> _State:
        rows = state.rows
        for channel in self._processes[number].inputs:
            rows = _with(rows, channel, ())
        return _State(_with(state.places, number, -1), state.hands, rows, state.sent)


def _with(values: tuple[T, ...], index: int, value: T) -> tuple[T, ...]:
    return (*values[:index], value, *values[index + 1 :])
