"""The waits of a run that has come to rest, as the reduction sees them."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from fabric.telling.causes import Operation

if TYPE_CHECKING:
    from fabric.state.run_state import ChannelState, RunState, UnitState, WaitState

__all__ = [
    "Need",
    "Stuck",
    "blocked",
    "channels_of",
    "cores",
    "find_stuck",
    "growable",
    "is_lost",
    "lost_room",
    "rotated",
    "wait_of",
]


class Stuck(NamedTuple):
    """What of a run can never go on.

    Attributes:
        cores: loops of units, or single ones that wait for something that has ended; each in the
            order of its waits.
        tail: units that wait behind them, in node order.
        needs: what each of them waits for, by node.
    """

    cores: list[list[UnitState]]
    tail: list[UnitState]
    needs: dict[int, Need]


def find_stuck(state: RunState) -> Stuck:
    """Find the units that can never go on; empty where all of them can.

    Args:
        state: of a run while no unit of it runs.
    """
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
    """Return the wait of a unit that has one."""
    assert unit.wait is not None
    return unit.wait


def channels_of(state: RunState, loop: Iterable[UnitState]) -> list[ChannelState]:
    """Return the channels that the units of ``loop`` wait for, in the order of their waits."""
    waits = (unit.wait for unit in loop)
    numbers = dict.fromkeys(number for wait in waits if wait for number in wait.channels)
    return [state.channels[number] for number in numbers]


def _peers(state: RunState, unit: UnitState, wait: WaitState) -> Iterator[int]:
    """Yield the nodes that could let ``unit`` go on."""
    if wait.operation is Operation.CAPACITY:
        yield from sorted(_who_frees(state, unit))
        return
    for number in wait.channels:
        channel = state.channels[number]
        if wait.operation is Operation.SEND:
            if not is_lost(channel):
                yield channel.consumer
        elif channel.closed_cycle is None:
            yield channel.producer


def _who_frees(state: RunState, unit: UnitState) -> set[int]:
    """Return the nodes that could give ``unit`` on-chip capacity."""
    (first, _), *_ = state.on_chip.requests
    if first != unit.number:
        return {first}
    return set().union(*(_holding(state, holder) for holder, _ in state.on_chip.held or ()))


def _holding(state: RunState, owner: int) -> set[int]:
    """Return a node that asked for room and those that may hold references to its buffers."""
    found = {owner}
    ahead = [owner]
    while ahead:
        node = ahead.pop()
        for channel in state.channels:
            carries = channel.carries == "buffer"
            if channel.producer == node and carries and channel.consumer not in found:
                found.add(channel.consumer)
                ahead.append(channel.consumer)
    return found


def lost_room(state: RunState) -> list[UnitState]:
    """Return units that hold on-chip capacity although they and all their readers have ended."""
    return [
        state.units[owner]
        for owner, _ in state.on_chip.held or ()
        if all(state.units[node].finished for node in _holding(state, owner))
    ]


def is_lost(channel: ChannelState) -> bool:
    """Whether the producer waits for a slot although there are free ones: credits are lost."""
    return channel.held < channel.depth


def rotated(loop: list[UnitState]) -> list[UnitState]:
    """Let a loop begin with its first unit that waits to send, where there is one."""
    for position, unit in enumerate(loop):
        if unit.wait is not None and unit.wait.operation is Operation.SEND:
            return loop[position:] + loop[:position]
    return loop


def growable(state: RunState, loop: list[UnitState]) -> ChannelState | None:
    """Return the channel that more slots may help: the shallowest full one of the loop.

    Source: T. Parks, Bounded Scheduling of Process Networks, 1995.
    """
    sending = [
        state.channels[unit.wait.channels[0]]
        for unit in loop
        if unit.wait is not None and unit.wait.operation is Operation.SEND
    ]
    full = [channel for channel in sending if not is_lost(channel)]
    return min(full, key=lambda channel: channel.depth, default=None)


class Need(NamedTuple):
    """What a parked node waits for.

    Attributes:
        peers: nodes that could serve it.
        any_of: one of them is enough; else all are needed, and nobody can serve a wait that has
            no peers.
    """

    peers: tuple[int, ...]
    any_of: bool = False


def blocked(needs: Mapping[int, Need], live: Iterable[int]) -> set[int]:
    """Return the nodes of ``needs`` that can never go on, whatever the ``live`` ones do.

    A node that is in neither has ended and serves nobody.
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
            if not missing[node] and node in stuck:
                stuck.remove(node)
                reached.append(node)
    return stuck


def cores(needs: Mapping[int, Need], stuck: set[int]) -> list[list[int]]:
    """Return the groups of ``stuck`` that wait for nobody outside of themselves.

    All the others wait behind them. Each group starts with its lowest node and goes on with the
    one that it waits for; groups are in the order of their lowest nodes.
    """
    if not stuck:
        return []
    import networkx as nx

    graph = nx.DiGraph()
    for node in sorted(stuck):
        graph.add_node(node)
        graph.add_edges_from((node, peer) for peer in needs[node].peers if peer in stuck)
    component = {}
    groups = list(nx.strongly_connected_components(graph))
    for number, group in enumerate(groups):
        for node in group:
            component[node] = number
    open_groups = {component[a] for a, b in graph.edges if component[a] != component[b]}
    closed = [group for number, group in enumerate(groups) if number not in open_groups]
    return sorted(_chain(needs, group) for group in closed)


def _chain(needs: Mapping[int, Need], group: set[int]) -> list[int]:
    """Order a group along its waits, depth first."""
    order: dict[int, None] = {}
    ahead = [min(group)]
    while ahead:
        node = ahead.pop()
        if node not in order:
            order[node] = None
            ahead += sorted(set(needs[node].peers) & group, reverse=True)
    return list(order)
