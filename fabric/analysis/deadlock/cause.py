"""The waits of a stopped run: its loops, the kind of each deadlock, and its cause."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from fabric.messages.causes import Operation
from fabric.timing.state.run_state import ChannelState, Expected, RunState, UnitState, WaitState

_SENTENCES: Final = 6
_THROUGH: Final = 4


class Stuck(NamedTuple):
    """The units that never continue."""

    cores: list[list[UnitState]]  # loops of waiting units, or one that waits for an ended unit
    tail: list[UnitState]  # other units, which wait for these
    needs: dict[int, Need]  # by the numbers of waiting units


def find_stuck(state: RunState) -> Stuck:
    units = state.units
    needs = {}
    live = []
    for unit in units:
        wait = unit.wait
        if wait is None or wait.operation in {Operation.REACH, Operation.OFF_CHIP}:
            if not unit.finished:
                live.append(unit.number)
        else:
            any_of = wait.any_of or wait.operation is Operation.CAPACITY
            needs[unit.number] = Need(tuple(_peers(state, unit, wait)), any_of)
    stuck = blocked(needs, live)
    groups = cores(needs, stuck)
    in_core = {node for group in groups for node in group}
    return Stuck(
        [rotated([units[node] for node in group]) for group in groups],
        [units[node] for node in sorted(stuck - in_core)],
        needs,
    )


def wait_of(unit: UnitState) -> WaitState:
    assert unit.wait is not None
    return unit.wait


def channels_of(state: RunState, loop: Iterable[UnitState]) -> list[ChannelState]:
    """Return the channels that the units of ``loop`` wait for, in the order of their waits."""
    waits = (unit.wait for unit in loop)
    numbers = dict.fromkeys(number for wait in waits if wait for number in wait.channels)
    return [state.channels[number] for number in numbers]


def _peers(state: RunState, unit: UnitState, wait: WaitState) -> Iterator[int]:
    if wait.operation is Operation.CAPACITY:
        yield from sorted(_freeing(state, unit))
        return
    for number in wait.channels:
        channel = state.channels[number]
        if wait.operation is Operation.SEND:
            if not is_lost(channel):
                yield channel.consumer
        elif channel.closed_cycle is None:
            yield channel.producer


def _freeing(state: RunState, unit: UnitState) -> set[int]:
    (first, _), *_ = state.on_chip.requests
    if first != unit.number:
        return {first}
    return set().union(*(_holding(state, holder) for holder, _ in state.on_chip.held or ()))


def _holding(state: RunState, owner: int) -> set[int]:
    buffers = [channel for channel in state.channels if channel.carries == "buffer"]
    holding = {owner}
    while (
        readers := {buffer.consumer for buffer in buffers if buffer.producer in holding} - holding
    ):
        holding |= readers
    return holding


def lost_room(state: RunState) -> list[UnitState]:
    """Return units that hold on-chip capacity although they and all their readers have ended."""
    return [
        state.units[owner]
        for owner, _ in state.on_chip.held or ()
        if all(state.units[node].finished for node in _holding(state, owner))
    ]


def is_lost(channel: ChannelState) -> bool:
    """Whether the producer waits for a slot although some are free: credits are lost."""
    return channel.held < channel.depth


def rotated(loop: list[UnitState]) -> list[UnitState]:
    """Return the loop, starting with its first unit that waits to send, if it has one."""
    for position, unit in enumerate(loop):
        if wait_of(unit).operation is Operation.SEND:
            return loop[position:] + loop[:position]
    return loop


def growable(state: RunState, loop: list[UnitState]) -> ChannelState | None:
    """Return the shallowest full channel of the loop, to be deepened first; None if none is full.

    Source: T. Parks, Bounded Scheduling of Process Networks, 1995.
    """
    sends = [wait for wait in map(wait_of, loop) if wait.operation is Operation.SEND]
    full = [channel for wait in sends if not is_lost(channel := _channel(wait, state))]
    return min(full, key=lambda channel: channel.depth, default=None)


class Need(NamedTuple):
    """The peers that a waiting node needs: one of them if ``any_of``, otherwise all."""

    peers: tuple[int, ...]
    any_of: bool = False


def blocked(needs: Mapping[int, Need], live: Iterable[int]) -> set[int]:
    """Return the nodes of ``needs`` that never continue, even if all ``live`` nodes do.

    A node that is in neither ``needs`` nor ``live`` has ended and serves no other node.
    """
    waiters = defaultdict(list)
    missing = {}
    for node, need in needs.items():
        peers = set(need.peers)
        missing[node] = min(1, len(peers)) if need.any_of else len(peers)
        for peer in peers:
            waiters[peer].append(node)
    stuck = set(needs)
    reached = deque(dict.fromkeys(live))
    while reached:
        for node in waiters[reached.popleft()]:
            missing[node] -= 1
            if not missing[node]:
                stuck.remove(node)
                reached.append(node)
    return stuck


def cores(needs: Mapping[int, Need], stuck: set[int]) -> list[list[int]]:
    """Return the groups of ``stuck`` in which nodes wait only for nodes of the group.

    All other stuck nodes wait for these groups. Each group starts with its lowest node, followed by
    the node that it waits for; groups are in the order of their lowest nodes.
    """
    if not stuck:
        return []
    import networkx as nx

    graph = nx.DiGraph()
    for node in sorted(stuck):
        graph.add_node(node)
        graph.add_edges_from((node, peer) for peer in needs[node].peers if peer in stuck)
    return sorted(
        list(nx.dfs_preorder_nodes(graph.subgraph(group), min(group), sort_neighbors=sorted))
        for group in nx.attracting_components(graph)
    )


def code(loop: list[UnitState], state: RunState) -> str:
    """Return the code of a loop, a key of ``KINDS``."""
    waits = [wait_of(unit) for unit in loop]
    operations = {wait.operation for wait in waits}
    if any(wait.operation is Operation.SEND and is_lost(_channel(wait, state)) for wait in waits):
        return "FAB-D005"
    if Operation.CAPACITY in operations:
        return "FAB-D005" if lost_room(state) else "FAB-D006"
    if Operation.SEND in operations:
        return "FAB-D001"
    if any(channel.closed_cycle is not None for channel in channels_of(state, loop)):
        return "FAB-D003"
    return "FAB-D002"


def needs(unit: UnitState, state: RunState) -> str:
    """Return the event that would let ``unit`` continue."""
    wait = wait_of(unit)
    if wait.operation is Operation.CAPACITY:
        return f"{state.on_chip.amount(dict(state.on_chip.requests)[unit.number])} on chip"
    if wait.operation is Operation.SEND:
        channel = _channel(wait, state)
        return f"a slot in {channel.option} for element {channel.sent + 1:,}"
    return " or ".join(
        f"element {channel.taken + 1:,} from {state.units[channel.producer].name}"
        for channel in (state.channels[number] for number in wait.channels)
    )


def cause(loop: list[UnitState], state: RunState, expected: Mapping[int, Expected]) -> str:
    """Explain a loop: the need of each unit, and the path back to the first unit."""
    named = [number for number in range(len(loop)) if _is_named(number, loop, state, expected)]
    sentences = []
    for position, number in enumerate(named):
        end = named[position + 1] if position + 1 < len(named) else len(loop)
        through = [unit.name for unit in loop[number + 1 : end]]
        sentence = _clause(loop[number], state, expected)
        if through:
            target = loop[end % len(loop)].name
            sentence += f", which waits{_through(through[1:])} for {target}"
        sentences.append(sentence)
    if len(sentences) > _SENTENCES:
        left_out = len(sentences) - _SENTENCES
        sentences[_SENTENCES - 2 : -2] = [f"{left_out:,} more wait for one another like this"]
    if code(loop, state) == "FAB-D002":
        sentences.append("All wait to receive, and no element is in flight")
    if any(wait_of(unit).operation is Operation.CAPACITY for unit in loop):
        sentences.append(_holders(state))
    return ". ".join(sentences) + "."


def _holders(state: RunState) -> str:
    memory = state.on_chip
    shares = [
        f"{state.units[owner].name} holds {memory.number(held):,}"
        for owner, held in memory.held or ()
    ]
    rest = len(shares) - _THROUGH
    more = f" and {rest:,} more hold{'s' if rest == 1 else ''} the rest" if rest > 0 else ""
    whole = f"Of {memory.room} on chip {', '.join(shares[:_THROUGH])}{more}"
    lost = " and ".join(owner.name for owner in lost_room(state)[:_THROUGH])
    return f"{whole}. The readers of {lost} have ended" if lost else whole


def _is_named(
    number: int, loop: list[UnitState], state: RunState, expected: Mapping[int, Expected]
) -> bool:
    """Whether a unit gets a sentence; otherwise the sentence of an earlier unit names it."""
    waits = list(map(wait_of, loop))
    return (
        number == 0
        or any(len(wait.channels) != 1 for wait in waits)
        or waits[number].operation is not Operation.RECEIVE
        or waits[number - 1].operation is not Operation.RECEIVE
        or bool(_group(waits[number], state, expected))
    )


def _through(names: list[str]) -> str:
    if not names:
        return ""
    more = f" and {len(names) - _THROUGH:,} more" if len(names) > _THROUGH else ""
    return f", through {', '.join(names[:_THROUGH])}{more},"


def hint(loop: list[UnitState], state: RunState, expected: Mapping[int, Expected]) -> str:
    """Suggest what is missing in a loop that no depth resolves; empty if unknown."""
    match code(loop, state):
        case "FAB-D002":
            return _missing_token(loop, state, expected)
        case "FAB-D003":
            channel = _channel(wait_of(loop[0]), state)
            producer, consumer = state.units[channel.producer], state.units[channel.consumer]
            return (
                f"Either {producer.name} sends element {channel.taken + 1:,} before it ends, or "
                f"{consumer.name} needs fewer elements: a stop or an element is missing on "
                f"{channel.option}"
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


def _clause(unit: UnitState, state: RunState, expected: Mapping[int, Expected]) -> str:
    wait = wait_of(unit)
    name = unit.name
    if wait.operation is Operation.CAPACITY:
        return f"{name} waits for {needs(unit, state)}"
    channel = _channel(wait, state)
    if wait.operation is Operation.SEND:
        held = channel.held
        if is_lost(channel):
            lost = channel.depth - held
            return (
                f"{name} waits for a slot in {channel.option}, which holds {held:,} of "
                f"{channel.depth:,}: {lost:,} reserved and never filled"
            )
        which = "the one" if held == 1 else f"one of the {held:,}"
        return (
            f"{name} cannot send element {channel.sent + 1:,} before "
            f"{state.units[channel.consumer].name} takes {which} in {channel.option}"
        )
    if channel.closed_cycle is not None:
        count, total = channel.sent, expected[channel.number].in_all
        of = f" of {total:,}" if isinstance(total, int) and total != count else ""
        noun = "element" if count == 1 and not of else "elements"
        return (
            f"{name} needs element {channel.taken + 1:,} from "
            f"{state.units[channel.producer].name}, which ended at cycle "
            f"{channel.closed_cycle:,} after {count:,}{of} {noun}{_stops(wait)}"
            f"{_selector_note(unit, channel, state)}"
        )
    group = _group(wait, state, expected)
    return f"{name} {f'{group} and ' if group else ''}needs {needs(unit, state)}"


def _stops(wait: WaitState) -> str:
    if wait.stops is None:
        return ""
    seen, awaited = wait.stops
    last = f"a stop of level {seen:,}" if seen else "no stop"
    return f"; its last element carries {last}, and one of level {awaited:,} is awaited"


def _selector_note(unit: UnitState, channel: ChannelState, state: RunState) -> str:
    return "".join(
        f"; selector {other.taken:,} of {other.option} selects it"
        for other in state.channels
        if other.consumer == unit.number and other.carries == "selector" and other != channel
    )


def _group(wait: WaitState, state: RunState, expected: Mapping[int, Expected]) -> str:
    if len(wait.channels) != 1:
        return ""
    channel = _channel(wait, state)
    size, taken = expected[channel.number].per_output, channel.taken
    if size is None or not taken % size:
        return ""
    return (
        f"has {taken % size:,} of the {size:,} elements that make its output {taken // size + 1:,}"
    )


def _missing_token(loop: list[UnitState], state: RunState, expected: Mapping[int, Expected]) -> str:
    inside = {unit.number for unit in loop}
    closing = []
    for unit in loop:
        for number in wait_of(unit).channels:
            channel, place = state.channels[number], expected[number].feedback
            if channel.producer in inside and place is not None:
                closing.append(f"{channel.name}, the Feedback of {place.brief}")
    where = " or ".join(closing)
    return f"The loop needs an initial element on {where}" if where else ""


def _channel(wait: WaitState, state: RunState) -> ChannelState:
    return state.channels[wait.channels[0]]
