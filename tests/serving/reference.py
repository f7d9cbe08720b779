"""A second scheduler, as simple as possible: every step looks at all requests again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True)
class Limits:
    sequences: int
    tokens: int
    size: int
    blocks: int | None
    overlap: bool


def reference(
    rows: Sequence[tuple[float, int, int]],
    limits: Limits,
    cost: Callable[[int, int], float],
) -> list[list[float]]:
    tokens_at: list[list[float]] = [[] for _ in rows]
    computed = [0 for _ in rows]
    planned = [0 for _ in rows]
    waiting: list[int] = []
    running: list[int] = []
    ahead: list[tuple[float, list[int]]] = []  # ends and requests of pending steps
    now, free, come = 0.0, 0.0, 0
    while any(len(got) < row[2] for got, row in zip(tokens_at, rows, strict=True)):
        while come < len(rows) and rows[come][0] <= now:
            waiting.append(come)
            come += 1
        waiting, running, taken = _plan(rows, limits, waiting, running, computed, planned)
        if taken:
            decodes = sum(
                n == 1
                and computed[who] >= rows[who][1]
                and _known(rows, planned, who) == computed[who] + 1
                for who, n in taken.items()
            )
            free = max(now, free) + cost(sum(taken.values()) - decodes, decodes)
            gets = []
            for who, n in taken.items():
                computed[who] += n
                if computed[who] == _known(rows, planned, who):
                    planned[who] += 1
                    gets.append(who)
            ahead.append((free, gets))
        if ahead and (len(ahead) == 2 or not limits.overlap or not taken):
            now, gets = ahead.pop(0)
            for who in gets:
                tokens_at[who].append(now)
                if len(tokens_at[who]) == rows[who][2]:
                    (running if who in running else waiting).remove(who)
                    computed[who] = 0
        elif not taken:
            now = rows[come][0]
    return tokens_at


def _known(rows: Sequence[tuple[float, int, int]], planned: Sequence[int], who: int) -> int:
    return rows[who][1] + planned[who]


def _plan(
    rows: Sequence[tuple[float, int, int]],
    limits: Limits,
    waiting: list[int],
    running: list[int],
    computed: list[int],
    planned: list[int],
) -> tuple[list[int], list[int], dict[int, int]]:
    waiting, running = list(waiting), list(running)
    taken: dict[int, int] = {}

    def fits(who: int, tokens: int) -> bool:
        if limits.blocks is None:
            return True
        held = {each: computed[each] + taken.get(each, 0) for each in running}
        held[who] = computed[who] + tokens
        return sum(ceil(each / limits.size) for each in held.values()) <= limits.blocks

    put_back = False
    for who in list(running):
        left = limits.tokens - sum(taken.values())
        if who not in running or not left:
            break
        if planned[who] == rows[who][2]:
            continue
        tokens = min(left, _known(rows, planned, who) - computed[who])
        while who in running and not fits(who, tokens):
            last = running.pop()
            computed[last] = 0
            waiting.insert(0, last)
            put_back = True
        if who in running:
            taken[who] = tokens
    while not put_back and waiting and len(running) < limits.sequences:
        left = limits.tokens - sum(taken.values())
        who = waiting[0]
        tokens = min(left, _known(rows, planned, who))
        if not tokens or not fits(who, tokens):
            break
        running.append(waiting.pop(0))
        taken[who] = tokens
    return waiting, running, taken
