from __future__ import annotations

from collections.abc import Sequence

from tests.fabric.sizing.networks import Network


def cycles_of(  # noqa: C901 - all rules in one place
    network: Network, depths: Sequence[int]
) -> int | None:
    # An element is visible a cycle after it was sent. Its slot is free a cycle after it was
    # received. Elements left when a unit ends are received in this cycle, or when they become
    # visible.
    ends = network.shape.ends
    clocks = [0] * len(network.steps)
    place = [0] * len(network.steps)
    ended: list[int | None] = [None] * len(network.steps)
    visible: list[list[int]] = [[] for _ in ends]
    received: list[list[int]] = [[] for _ in ends]

    def slot_free(number: int) -> int | None:
        before = len(visible[number]) - depths[number]
        if before < 0:
            return 0
        if before < len(received[number]):
            return received[number][before] + 1
        end = ended[ends[number][1]]
        return None if end is None else max(end, visible[number][before]) + 1

    def continues(unit: int) -> bool:
        letter, number = network.steps[unit][place[unit]]
        now = clocks[unit]
        if letter == "c":
            clocks[unit] = now + number
        elif letter == "s":
            free = slot_free(number)
            if free is None:
                return False
            clocks[unit] = max(now, free)
            visible[number].append(clocks[unit] + 1)
        elif len(received[number]) < len(visible[number]):
            clocks[unit] = max(now, visible[number][len(received[number])])
            if letter != "p":
                received[number].append(clocks[unit])
            if letter == "e":
                return True
        else:
            end = ended[ends[number][0]]
            if letter != "e" or end is None:
                return False
            clocks[unit] = max(now, end)
        place[unit] += 1
        return True

    moved = True
    while moved:
        moved = False
        for unit, steps in enumerate(network.steps):
            if ended[unit] is not None:
                continue
            while place[unit] < len(steps) and continues(unit):
                moved = True
            if place[unit] == len(steps):
                ended[unit] = clocks[unit]
                moved = True
    return None if None in ended else max(clocks)
