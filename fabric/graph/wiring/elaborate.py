"""Makes the plan of a wired program: ordered nodes, and edges.

Operators are in wiring order, except that a source is just before its first consumer. A Broadcast
is inferred for each stream with several readers. Broadcasts are last. The order of nodes breaks
ties and orders the ports of the HBM.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import count
from typing import Literal, NamedTuple

from fabric.graph.arguments.described import refuse
from fabric.graph.values.dims import Claim, dim_text
from fabric.graph.values.expression import Symbol
from fabric.graph.values.stream_type import StreamType
from fabric.graph.wiring.inserted import Broadcast, in_front
from fabric.graph.wiring.memory_map import MemoryMap, memory_map_of
from fabric.graph.wiring.names import unused
from fabric.graph.wiring.operator import Node
from fabric.graph.wiring.program import Program
from fabric.graph.wiring.sites import Floor
from fabric.graph.wiring.stream import Assumed, Feedback, Stream
from fabric.messages.text import close_to


class Edge(NamedTuple):
    """A channel of the plan, from an output port to an input port."""

    producer: Node
    output: int
    consumer: Node
    input: int
    claims: tuple[Claim, ...] = ()
    """Sizes that the program states and the producer's type does not prove."""

    @property
    def name(self) -> str:
        return f"{self.producer.name}.{self.output} -> {self.consumer.name}.{self.input}"

    @property
    def key(self) -> str:
        """``consumer.input``, the unique name of the channel for ``--depth``."""
        return f"{self.consumer.name}.{self.input}"

    @property
    def type(self) -> StreamType:
        return self.producer.outputs[self.output].type


class Plan(NamedTuple):
    """A complete program. If the hardware has a network, ``placed`` sets ``floor``."""

    program: Program
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    memory_map: MemoryMap
    floor: Floor | None = None

    @property
    def shares_links(self) -> bool:
        """Whether elements may wait for links of the network."""
        return self.floor is not None and self.floor.mesh.limits

    @property
    def peak_bytes_per_cycle(self) -> Fraction:
        """The peak bandwidth of the off-chip memory for the operators of the plan."""
        return self.program.hardware.hbm.peak_for(max(len(self.clients), 1))

    @property
    def clients(self) -> dict[int, Literal["read", "write"]]:
        """The numbers of the nodes that access off-chip memory, each with its side."""
        spills = self.program.hardware.on_chip.spill
        sides = (
            (node.index, node.operator.off_chip or (node.operator.spills if spills else None))
            for node in self.nodes
        )
        return {index: side for index, side in sides if side is not None}


def elaborate(program: Program, initial: Mapping[Feedback, int] | None = None) -> Plan:
    """Order nodes, resolve feedback, infer Broadcasts and place the tensors of a wired program.

    ``initial`` has the number of sub-tensors to insert in front of a feedback.
    """
    if not program.nodes:
        refuse(
            f"program {program.name!r} has no operators: expected at least one", place=program.place
        )
    _check_expected(program)
    fronts = _fronts(program, initial or {})
    nodes = [*_ordered(program), *fronts.values()]
    readers = _readers(program, nodes, fronts)
    edges: list[Edge] = []
    names = {node.name for node in nodes}
    for node in tuple(nodes):
        _check_useful(node, readers)
        for port, stream in enumerate(node.outputs):
            port_readers = readers[node, port]
            if not port_readers and port not in node.operator.secondary_outputs:
                refuse(
                    f"{node.name}: output {port} ({stream.type}) is read by no operator: "
                    "expected a reader, such as a store",
                    place=node.place,
                )
            if not port_readers and port in node.expected:
                refuse(
                    f"expect is called on {stream}, which no operator reads: expected a reader",
                    place=node.expected[port].place,
                )
            outputs = [(node, port)]
            if len(port_readers) > 1:
                name = unused(f"broadcast_{node.name}_{port}", names.__contains__)
                names.add(name)
                broadcast = _broadcast(node, stream, len(port_readers), name)
                nodes.append(broadcast)
                edges.append(Edge(node, port, broadcast, 0))
                outputs = [(broadcast, copy) for copy in range(len(port_readers))]
            for output, reader in zip(outputs, port_readers, strict=False):
                edges.append(Edge(*output, *reader, _claims(reader, fronts)))
    for index, node in enumerate(nodes):
        node.index = index
    _check_statements(program, edges)
    memory_map = memory_map_of(nodes, program.hardware.placement)
    return Plan(program, tuple(nodes), tuple(edges), memory_map)


def _check_expected(program: Program) -> None:
    """Refuse outputs that are expected and not stored, unless a user's operator may store them."""
    stored = program.names.outputs
    if any(
        node.operator.is_users and (not node.outputs or node.operator.off_chip == "write")
        for node in program.nodes
    ):
        return
    for name, expectation in program.expected.items():
        if name not in stored:
            expectation.refuse_output(program.name, name, stored)


def _claims(reader: tuple[Node, int], fronts: Mapping[Feedback, Node]) -> tuple[Claim, ...]:
    node, port = reader
    stream = node.inputs[port]
    # Claims are about the stream without the inserted sub-tensors.
    return () if stream in fronts else stream.claims


def _check_statements(program: Program, edges: Sequence[Edge]) -> None:
    if program.deepened:
        keys = {edge.key for edge in edges}
        for option, place in program.deepened.items():
            if option not in keys:
                refuse(
                    f"deepen: no channel is called {option!r}: expected OPERATOR.INPUT, "
                    f"{close_to(sorted(keys), option)}",
                    place=place,
                )
    for edge in edges:
        for claim in edge.claims:
            bound = program.sizes.get(claim.found) if isinstance(claim.found, Symbol) else None
            if isinstance(claim.assumed, int) and bound not in (None, claim.assumed):
                refuse(
                    f"{claim.stream}: dimension {claim.dimension} ({dim_text(claim.found)}) is "
                    f"bound to {bound}: expected {claim.assumed}, as the program assumes",
                    place=claim.place,
                )


def _check_useful(node: Node, readers: Mapping[tuple[Node, int], object]) -> None:
    """Refuse an operator that stores nothing and has only unread secondary outputs."""
    ports = range(len(node.outputs))
    if (
        len(ports) > 1
        and node.operator.off_chip != "write"
        and not any(readers.get((node, port)) for port in ports)
        and set(node.operator.secondary_outputs).issuperset(ports)
    ):
        refuse(
            f"{node.name}: none of its {len(ports)} outputs is read by an operator: "
            "expected a reader of one of them",
            place=node.place,
        )


def _fronts(program: Program, initial: Mapping[Feedback, int]) -> dict[Feedback, Node]:
    taken = {node.name for node in program.nodes}
    names = (name for number in count(1) if (name := f"initial_{number}") not in taken)
    return {
        feedback: in_front(program, feedback, elements, next(names))
        for feedback, elements in initial.items()
        if elements
    }


def _source(stream: Stream, fronts: Mapping[Feedback, Node]) -> Stream:
    if isinstance(stream, Feedback):
        front = fronts.get(stream)
        return _source(stream.connected, fronts) if front is None else front.outputs[0]
    return stream.resolve()


def _readers(
    program: Program, nodes: list[Node], fronts: Mapping[Feedback, Node]
) -> dict[tuple[Node, int], list[tuple[Node, int]]]:
    own_nodes = {*program.nodes, *fronts.values()}
    readers: dict[tuple[Node, int], list[tuple[Node, int]]] = defaultdict(list)
    for node in nodes:
        for port, stream in enumerate(node.inputs):
            source = _source(stream, fronts)
            if isinstance(stream, Assumed):
                stream.note_reader()
            if not isinstance(source.node, Node) or source.node not in own_nodes:
                refuse(
                    f"{node.name} reads {source}, a stream of another program: "
                    f"expected a stream of {program.name!r}",
                    place=node.place,
                )
            readers[source.node, source.port].append((node, port))
    return readers


def _ordered(program: Program) -> list[Node]:
    ordered: dict[Node, None] = {}
    for node in program.nodes:
        if not node.inputs:
            continue
        for stream in node.inputs:
            producer = stream.resolve().node
            if isinstance(producer, Node) and not producer.inputs:
                ordered.setdefault(producer)
        ordered.setdefault(node)
    for node in program.nodes:
        ordered.setdefault(node)
    return list(ordered)


def _broadcast(node: Node, stream: Stream, readers: int, name: str) -> Node:
    broadcast = Node(Broadcast(readers), name, node.place, (stream,))
    broadcast.outputs = tuple(Stream(broadcast, port, stream.type) for port in range(readers))
    return broadcast
