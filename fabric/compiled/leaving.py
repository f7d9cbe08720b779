"""The operators of a region go on as tasks: what is in the arrays goes to units and channels."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final

from fabric.compiled import columns as c
from fabric.compiled.past import EFFECTLESS, Place
from fabric.compiled.publication import publish

if TYPE_CHECKING:
    from fabric.compiled.arrays import Arrays, Joint
    from fabric.compiled.boundary import Boundary
    from fabric.compiled.codes import Codes
    from fabric.compiled.recording import Awaited
    from fabric.engine.channel import Channel

__all__ = ["Leaving", "leave"]


def leave(arrays: Arrays, boundary: Boundary, open_channel: Callable[[Channel], object]) -> None:
    """Let units and channels stand where the loop has brought them, as those of tasks.

    Args:
        arrays: of the loop.
        boundary: of the region.
        open_channel: makes room in a channel that was not opened.
    """
    boundary.emit()
    for joint in arrays.joints:
        if joint.producer >= 0 and joint.consumer >= 0:
            open_channel(joint.channel)
    publish(arrays, boundary)
    for number, (joint, row) in enumerate(
        zip(arrays.joints, arrays.channels.tolist(), strict=True)
    ):
        if joint.producer >= 0:
            joint.channel.next_send_cycle = row[c.NEXT_SEND]
            _resume_sending(arrays, number, joint, row)
        if joint.consumer >= 0:
            joint.channel.next_take_cycle = row[c.NEXT_TAKE]
            taken, peak = row[c.TAKEN], row[c.PEAK]
            recent = _usable_cycles(arrays, number, max(0, taken - peak), taken)
            recent = [0] * (peak - len(recent)) + recent
            joint.channel.resume_receiving(recent if peak < row[c.DEPTH] else ())


def _resume_sending(arrays: Arrays, number: int, joint: Joint, row: list[int]) -> None:
    used = row[c.SENT] + row[c.RESERVED]
    depth, taken = row[c.DEPTH], row[c.TAKEN]
    unspent = _usable_cycles(arrays, number, max(0, used - depth), taken)
    joint.channel.resume_sending(max(0, depth - used), unspent, row[c.RESERVED])


def _usable_cycles(arrays: Arrays, number: int, first: int, end: int) -> list[int]:
    """Return when the credits of elements ``first`` to ``end`` - 1 of a channel are usable."""
    base, mask = arrays.place(number)
    slots = arrays.slots.array
    return [slots.item(base + (index & mask), c.USABLE) for index in range(first, end)]


class Leaving:
    """Where the operators stand when they leave the region."""

    def __init__(
        self,
        arrays: Arrays,
        *,
        asked: Mapping[int, tuple[int, int, int]],
        refused: Mapping[int, BaseException],
        answered: Collection[int],
    ) -> None:
        """Look at ``arrays``.

        Args:
            arrays: of the loop.
            asked: bursts of stages that have not been submitted: rows, bytes, number of the tile.
            refused: stages whose bursts the memory would not take, with what it raised.
            answered: stages whose burst is complete.
        """
        self._arrays: Final = arrays
        self._asked: Final = asked
        self._refused: Final = refused
        self._answered: Final = answered

    def place(self, number: int) -> Place:
        """Return where stage ``number`` stands."""
        arrays = self._arrays
        stage = arrays.stages[number]
        row = arrays.rows[number].tolist()
        status, codes = row[c.STATUS], arrays.codes
        done, rounds = self._done(row)
        first, stamps = row[c.FIRST_INPUT], row[c.FIRST_STAMP]
        path: list[tuple[Awaited, int]] = []
        if row[c.BEFORE] >= 0:
            awaited = stage.automaton.awaited(row[c.BEFORE])
            assert awaited is not None
            path = [*stage.automaton.path(row[c.BEFORE]), (awaited, row[c.HANDED])]
        looks = None
        if stage.automaton.carries_numbers:
            looks = [arrays.last_looks(first + port) for port in range(row[c.INPUTS])]
        is_all_done = row[c.PC] == row[c.PC_END] and status != c.OFF_CHIP
        return Place(
            answers=_answers(path, looks, codes),
            done=None if is_all_done else done,
            rounds=rounds,
            stamps=arrays.stamps[stamps : stamps + c.STAMPS].tolist(),
            arrivals=[
                (cycle, port) for cycle, port in arrays.marks[first : first + row[c.MARKS]].tolist()
            ],
            arrival=row[c.ARRIVAL],
            ended=status == c.DRAINING,
            burst=self._asked.get(number),
            moving=status == c.OFF_CHIP and number not in self._answered,
            error=self._refused.get(number),
        )

    def _done(self, row: list[int]) -> tuple[int, int]:
        """Return how many operations of its stretch a stage has done, and rounds of a loop.

        Those of a loop count as of one round.
        """
        operations = self._arrays.tables.operations.array
        pc, rounds = row[c.PC], row[c.TIMES]
        if rounds:
            repeat = pc
            while operations[repeat, c.WHAT] != c.REPEAT:
                repeat += 1
            if pc == repeat - operations[repeat, c.AT]:
                # Before a round is as good as behind the one before.
                pc, rounds = repeat, rounds - 1
        kinds = operations[row[c.BEGAN] : pc, c.WHAT].tolist()
        return sum(kind not in EFFECTLESS for kind in kinds), rounds


def _answers(
    path: list[tuple[Awaited, int]], looks: list[list[int]] | None, codes: Codes
) -> list[object]:
    """Return what an operator was handed on its ``path``.

    Args:
        path: what it waited for, and the codes of what came.
        looks: of one that carries numbers, which the path is without: by input, what was looked at
            last with them, the latest first.
        codes: of elements.
    """
    answers: list[object] = []
    for (kind, port, _), code in reversed(path):
        if kind == c.POP:
            answers.append(code)
        elif code < 0 or looks is None:
            answers.append(codes.element(code))
        else:
            known = looks[port].pop(0) if looks[port] else c.ENDED_CODE
            is_it = known >= 0 and code & ~c.NUMBER_MASK == known & ~c.NUMBER_MASK
            answers.append(codes.element(known) if is_it else codes.opaque(code, port))
    return answers[::-1]
