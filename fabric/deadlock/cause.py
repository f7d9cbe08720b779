"""What kind of deadlock a loop is, and why it came about, in the program's words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from fabric.deadlock.tokens import Tokens, sent
from fabric.deadlock.waits import is_lost, lost_room

if TYPE_CHECKING:
    from fabric.engine.unit import Unit, Wait

__all__ = ["cause", "code", "hint", "needs"]

_SENTENCES: Final = 6
"""Sentences of a cause before the middle of a long loop is left out."""

_THROUGH: Final = 4
"""How many of the units that only pass something on are named."""


def code(loop: list[Unit], tokens: Tokens) -> str:
    """Return the code of ``KINDS`` that a loop belongs to."""
    waits = [_wait(unit) for unit in loop]
    operations = {wait.operation for wait in waits}
    if any(wait.operation == "send" and is_lost(wait.channels[0]) for wait in waits):
        return "FAB-D005"
    if "capacity" in operations:
        return "FAB-D005" if lost_room(tokens.machine) else "FAB-D006"
    if "send" in operations:
        return "FAB-D001"
    if any(channel.closed_cycle is not None for wait in waits for channel in wait.channels):
        return "FAB-D003"
    return "FAB-D002"


def needs(unit: Unit, tokens: Tokens) -> str:
    """Say what would let ``unit`` go on."""
    wait = _wait(unit)
    if wait.operation == "capacity":
        return f"{_wanted(unit, tokens):,} bytes on chip"
    if wait.operation == "send":
        channel = wait.channels[0]
        return f"a slot in {tokens.edge(channel).key} for element {sent(channel) + 1:,}"
    return " or ".join(
        f"element {channel.elements + 1:,} from {channel.producer.name}"
        for channel in wait.channels
    )


def cause(loop: list[Unit], tokens: Tokens) -> str:
    """Explain a loop: who needs what, and through whom it comes back to where it began."""
    told = [number for number, unit in enumerate(loop) if _is_told(number, unit, loop, tokens)]
    if any(len(_wait(unit).channels) != 1 for unit in loop):
        told = list(range(len(loop)))
    sentences = []
    for position, number in enumerate(told):
        end = told[position + 1] if position + 1 < len(told) else len(loop)
        through = [unit.name for unit in loop[number + 1 : end]]
        sentence = _clause(loop[number], tokens)
        if through:
            target = loop[end % len(loop)].name
            sentence += f", which waits{_through(through[1:])} for {target}"
        sentences.append(sentence)
    if len(sentences) > _SENTENCES:
        left_out = len(sentences) - _SENTENCES
        sentences[_SENTENCES - 2 : -2] = [f"{left_out:,} more wait for one another like this"]
    if code(loop, tokens) == "FAB-D002":
        sentences.append("All of them wait to receive, and nothing is on its way")
    if any(_wait(unit).operation == "capacity" for unit in loop):
        sentences.append(_holders(tokens))
    return ". ".join(sentences) + "."


def _holders(tokens: Tokens) -> str:
    """Say who holds the on-chip memory."""
    memory = tokens.machine.on_chip
    held = sorted(memory.held_by.items(), key=lambda item: item[0].index)
    shares = [f"{owner.name} holds {size_bytes:,}" for owner, size_bytes in held if size_bytes]
    more = f" and {len(shares) - _THROUGH:,} more hold the rest" if len(shares) > _THROUGH else ""
    whole = f"Of {memory.capacity_bytes:,} bytes on chip {', '.join(shares[:_THROUGH])}{more}"
    lost = " and ".join(owner.name for owner, _ in lost_room(tokens.machine)[:_THROUGH])
    return f"{whole}. The readers of {lost} have ended" if lost else whole


def _is_told(number: int, unit: Unit, loop: list[Unit], tokens: Tokens) -> bool:
    """Whether a unit does more than wait for the next one with nothing in its hands."""
    wait = _wait(unit)
    return (
        number == 0
        or wait.operation != "receive"
        or len(wait.channels) > 1
        or wait.channels[0].closed_cycle is not None
        or _wait(loop[number - 1]).operation != "receive"
        or bool(_group(unit, tokens))
    )


def _through(names: list[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _THROUGH:,} more" if len(names) > _THROUGH else ""
    return f", through {', '.join(names[:_THROUGH])}{more},"


def hint(loop: list[Unit], tokens: Tokens) -> str:
    """Say where something is missing in a loop that no depth releases; empty where unknown."""
    match code(loop, tokens):
        case "FAB-D002":
            return _missing_token(loop, tokens)
        case "FAB-D003":
            (channel, *_) = _wait(loop[0]).channels
            producer, consumer = channel.producer.name, channel.consumer.name
            return (
                f"Either {producer} sends element {channel.elements + 1:,} before it ends, or "
                f"{consumer} is asked for less: a stop or an element is missing on "
                f"{tokens.edge(channel).key}"
            )
        case "FAB-D005":
            return (
                "Every slot that is reserved has to be filled with put(), and every buffer that is "
                "read has to be released: this is a fault of an operator"
            )
        case "FAB-D006":
            return "On-chip capacity has to come free earlier"
        case _:
            return ""


def _clause(unit: Unit, tokens: Tokens) -> str:
    wait = _wait(unit)
    name = unit.name
    if wait.operation == "capacity":
        return f"{name} waits for {needs(unit, tokens)}"
    channel = wait.channels[0]
    if wait.operation == "send":
        key = tokens.edge(channel).key
        held = len(channel.queue)
        if is_lost(channel):
            lost = channel.depth - held
            return (
                f"{name} waits for a slot in {key}, which holds {held:,} of {channel.depth:,}: "
                f"{lost:,} reserved and never filled"
            )
        which = "the one" if held == 1 else f"one of the {held:,}"
        return (
            f"{name} cannot send element {sent(channel) + 1:,} before {channel.consumer.name} "
            f"takes {which} in {key}"
        )
    if channel.closed_cycle is not None and len(wait.channels) == 1:
        count = sent(channel)
        expected = tokens.expected(channel)
        of = f" of {expected:,}" if isinstance(expected, int) and expected != count else ""
        noun = "element" if count == 1 and not of else "elements"
        return (
            f"{name} needs element {channel.elements + 1:,} from {channel.producer.name}, which "
            f"ended at cycle {channel.closed_cycle:,} after {count:,}{of} {noun}{_stops(wait)}"
        )
    group = _group(unit, tokens)
    return f"{name} {f'{group} and ' if group else ''}needs {needs(unit, tokens)}"


def _stops(wait: Wait) -> str:
    """Say which stop a stream that ended has left out, where it had to close something."""
    if wait.stops is None:
        return ""
    seen, awaited = wait.stops
    last = f"a stop of level {seen:,}" if seen else "no stop"
    return f"; its last element carries {last}, and one of level {awaited:,} is awaited"


def _group(unit: Unit, tokens: Tokens) -> str:
    """Say how much of its next output a unit has, where the shapes tell."""
    wait = _wait(unit)
    if wait.operation != "receive" or len(wait.channels) != 1:
        return ""
    channel = wait.channels[0]
    size = tokens.per_output(channel)
    taken = channel.elements
    if size is None or not taken % size:
        return ""
    return (
        f"has {taken % size:,} of the {size:,} elements that make its output {taken // size + 1:,}"
    )


def _missing_token(loop: list[Unit], tokens: Tokens) -> str:
    """Name the channels that close a loop of receivers: the ones wired as feedback."""
    inside = set(loop)
    closing = []
    for unit in loop:
        for channel in _wait(unit).channels:
            place = tokens.feedback(channel)
            if channel.producer in inside and place is not None:
                closing.append(
                    f"{channel.name}, the Feedback of {Path(place.file).name}:{place.line}"
                )
    where = " or ".join(closing)
    return f"The loop needs an initial element on {where}" if where else ""


def _wanted(unit: Unit, tokens: Tokens) -> int:
    """Return the bytes that ``unit`` waits for."""
    return next(wanted for each, wanted in tokens.machine.on_chip.requests if each is unit)


def _wait(unit: Unit) -> Wait:
    assert unit.wait is not None
    return unit.wait
