"""A program in a notebook: its graph, and tables of its operators and channels."""

from __future__ import annotations

from collections.abc import Sequence

from fabric.analysis.drawing.picture import picture_of
from fabric.analysis.drawing.svg import svg
from fabric.display.parts import Drawing, Fold, Rows, Sheet, Title
from fabric.graph.wiring.elaborate import Edge, elaborate
from fabric.graph.wiring.operator import Node
from fabric.graph.wiring.program import Program
from fabric.messages.errors import ProgramError
from fabric.messages.text import counted, families, merged_text, without_numbers


def program_sheet(program: Program) -> Sheet:
    """Yield the graph and the tables; of an incomplete program, its operators so far."""
    try:
        plan = elaborate(program)
    except ProgramError as error:
        so_far = f"  {counted(len(program.nodes), 'operator')} so far; {error.message}"
        yield Title(program.name, so_far)
        yield Fold("Operators", [_operators(program.nodes)])
        return
    wired = f"{counted(len(plan.nodes), 'operator')}, {counted(len(plan.edges), 'channel')}"
    yield Title(program.name, f"  {wired}, {program.mode} mode")
    yield Drawing(lambda: svg(picture_of(plan)))
    yield Fold("Operators", [_operators(plan.nodes)])
    yield Fold("Channels", [_channels(plan.edges)])


def program_svg(program: Program) -> str | None:
    """Return the graph as SVG; None if the program is incomplete."""
    try:
        return svg(picture_of(elaborate(program)))
    except ProgramError:
        return None


def _operators(nodes: Sequence[Node]) -> Rows:
    def makes(node: Node) -> str:
        return "; ".join(map(str, node.output_types))

    rows = [
        (
            title,
            len(members),
            type(members[0].operator).__name__,
            members[0].operator.kind,
            merged_text([makes(node) for node in members]),
            members[0].place.brief,
        )
        for title, members in families(
            nodes,
            lambda node: node.name,
            lambda node: (type(node.operator).__name__, node.place, without_numbers(makes(node))),
        )
    ]
    return Rows(("name", "operators", "operator", "unit", "makes", "wired at"), rows)


def _channels(edges: Sequence[Edge]) -> Rows:
    def carries(edge: Edge) -> str:
        return str(edge.consumer.inputs[edge.input].type)

    rows = [
        (title, len(members), merged_text([carries(edge) for edge in members]))
        for title, members in families(
            edges,
            lambda edge: (
                f"{edge.producer.name}.{edge.output} \N{RIGHTWARDS ARROW} "
                f"{edge.consumer.name}.{edge.input}"
            ),
            lambda edge: (edge.producer.place, edge.consumer.place, without_numbers(carries(edge))),
        )
    ]
    return Rows(("channel", "channels", "carries"), rows)
