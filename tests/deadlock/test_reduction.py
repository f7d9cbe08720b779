from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fabric.analysis.deadlock.cause import Need, blocked

NODES = 7


def needs_of(*peers: tuple[int, ...], any_of: tuple[int, ...] = ()) -> dict[int, Need]:
    return {node: Need(each, node in any_of) for node, each in enumerate(peers)}


class TestBlocked:
    @given(
        st.lists(st.lists(st.integers(0, NODES + 2), max_size=3), min_size=NODES, max_size=NODES),
        st.sets(st.integers(0, NODES - 1)),
        st.sets(st.integers(NODES, NODES + 2)),
    )
    def test_blocked_nodes_equal_a_fixed_point(
        self, peers: list[list[int]], any_of: set[int], live: set[int]
    ) -> None:
        needs = needs_of(*map(tuple, peers), any_of=tuple(any_of))
        free = set(live)
        for _ in needs:
            free |= {
                node
                for node, need in needs.items()
                if need.peers and (any if need.any_of else all)(peer in free for peer in need.peers)
            }

        assert set(needs) - free == blocked(needs, live)
