"""Which channels have one depth, and between which numbers it may be."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence

from fabric.retiming.record import Record
from fabric.sizing.problem import Slot, Variable
from fabric.telling.errors import ConfigurationError
from fabric.telling.wording import close_to

__all__ = ["variables_of"]


def variables_of(
    records: Sequence[Record], pinned: Mapping[str, int], shared: Sequence[str]
) -> tuple[Variable, ...]:
    """Return one variable for each channel of ``records``, or for those that share a depth.

    Args:
        records: with the same channels.
        pinned: depths that are given, by channel.
        shared: patterns of channels; those that match one share its depth.

    Raises:
        ConfigurationError: a name or a pattern matches no channel, a channel matches two patterns,
            or channels that share a depth are pinned differently.
    """
    first = records[0]
    options = [channel.option for channel in first.channels]
    for option in pinned:
        if option not in first.number:
            raise ConfigurationError(
                f"--depth {option}: no channel has that name: expected OPERATOR.INPUT, "
                f"{close_to(sorted(options), option)}"
            )
    of_pattern = _by_pattern(options, shared)
    numbers: dict[str, list[int]] = {}
    for number, option in enumerate(options):
        numbers.setdefault(of_pattern.get(option, option), []).append(number)
    return tuple(_variable(name, its, records, pinned) for name, its in numbers.items())


def _by_pattern(options: Sequence[str], shared: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pattern in shared:
        matching = fnmatch.filter(options, pattern)
        if not matching:
            raise ConfigurationError(
                f"--share {pattern}: no channel has such a name: expected a pattern of "
                f"OPERATOR.INPUT, such as {', '.join(options[:4])}"
            )
        for option in matching:
            if option in found:
                raise ConfigurationError(
                    f"--share {pattern}: {option} matches {found[option]}, too: "
                    "expected one pattern for a channel"
                )
            found[option] = pattern
    return found


def _variable(
    name: str, numbers: Sequence[int], records: Sequence[Record], pinned: Mapping[str, int]
) -> Variable:
    channels = [[record.channels[number] for record in records] for number in numbers]
    slots = tuple(
        Slot(same[0].option, max(channel.element_bytes for channel in same)) for same in channels
    )
    given = {pinned[slot.option] for slot in slots if slot.option in pinned}
    if len(given) > 1:
        raise ConfigurationError(
            f"--share {name}: channels are pinned at {' and '.join(map(str, sorted(given)))}: "
            "expected one depth"
        )
    if given:
        depth = given.pop()
        return Variable(name, slots, depth, depth, is_pinned=True)
    most = max(channel.elements for same in channels for channel in same)
    return Variable(name, slots, 1, max(1, most))
