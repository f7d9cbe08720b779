"""Where things are in a picture."""

from __future__ import annotations

from fabric.drawing.layout import layered


def test_a_cycle_hangs_from_its_first_node() -> None:
    """Of a cycle the arrow back to where it begins points up, and no other."""
    layout = layered([(10, 10)] * 3, [(0, 1), (1, 2), (2, 0)], [(5, 5)] * 3)

    first, second, third = (y for _, y in layout.nodes)
    assert first < second < third


def test_one_node_feeds_itself() -> None:
    """Its arrow has somewhere to go, and is no cycle to be turned round."""
    layout = layered([(10, 10)] * 2, [(0, 0), (0, 1)], [(5, 5)] * 2)

    (_, first), (_, second) = layout.nodes
    assert first < second
