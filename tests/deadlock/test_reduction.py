"""Who can never go on, in graphs of AND and OR waits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fabric.analysis.deadlock.cause import Need, blocked, cores

NODES = 7


def needs_of(*peers: tuple[int, ...], any_of: tuple[int, ...] = ()) -> dict[int, Need]:
    """Return waits: node i waits for ``peers[i]``, those in ``any_of`` for one of them."""
    return {node: Need(each, node in any_of) for node, each in enumerate(peers)}


class TestBlocked:
    def test_chain_behind_a_live_node(self) -> None:
        """Who waits for somebody who can act is not stuck, through any number of others."""
        assert set() == blocked(needs_of((1,), (2,), (3,)), live=[3])

    def test_ring(self) -> None:
        """A ring is stuck, and who waits for it too."""
        assert {0, 1, 2} == blocked(needs_of((1,), (0,), (1,)), live=[3])

    def test_finished_peer(self) -> None:
        """A wait for somebody who has ended is never served."""
        assert {0} == blocked(needs_of((5,)), live=[])

    def test_all_of(self) -> None:
        """A wait for two needs both of them."""
        assert {0, 1} == blocked(needs_of((1, 2), (0,)), live=[2])

    def test_any_of(self) -> None:
        """A wait for one of two is served by the live one: a cycle is no knot."""
        assert set() == blocked(needs_of((1, 2), (0,), any_of=(0,)), live=[2])

    def test_knot(self) -> None:
        """Waits for one of several that all wait for one another are stuck."""
        assert {0, 1, 2} == blocked(needs_of((1, 2), (0,), (0,), any_of=(0,)), live=[])

    @given(
        st.lists(st.lists(st.integers(0, NODES + 2), max_size=3), min_size=NODES, max_size=NODES),
        st.sets(st.integers(0, NODES - 1)),
        st.sets(st.integers(NODES, NODES + 2)),
    )
    def test_against_rounds(self, peers: list[list[int]], any_of: set[int], live: set[int]) -> None:
        """The same as marking who can be served again and again until nobody is added."""
        needs = needs_of(*map(tuple, peers), any_of=tuple(any_of))
        free = set(live)
        for _ in needs:
            free |= {
                node
                for node, need in needs.items()
                if need.peers and (any if need.any_of else all)(peer in free for peer in need.peers)
            }

        assert set(needs) - free == blocked(needs, live)


class TestCores:
    def test_ring_and_tail(self) -> None:
        """Only the ring is the core, however long the tail, in the order of its waits."""
        needs = needs_of((2,), (0,), (3,), (2,), (1,))

        assert [[2, 3]] == cores(needs, {0, 1, 2, 3, 4})

    def test_order_of_waits(self) -> None:
        """A ring begins with its lowest node and goes on with the one that it waits for."""
        assert [[0, 3, 1, 2]] == cores(needs_of((3,), (2,), (0,), (1,)), {0, 1, 2, 3})

    def test_two(self) -> None:
        """Loops that do not wait for one another are cores of their own."""
        assert [[0, 2], [1, 3]] == cores(needs_of((2,), (3,), (0,), (1,)), {0, 1, 2, 3})

    def test_one_loop_behind_another(self) -> None:
        """A loop that waits for another one is tail."""
        assert [[2, 3]] == cores(needs_of((1, 2), (0,), (3,), (2,)), {0, 1, 2, 3})

    def test_finished_peer(self) -> None:
        """One node that waits for somebody who has ended is a core alone."""
        assert [[1]] == cores(needs_of((1,), (9,)), {0, 1})
