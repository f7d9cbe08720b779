from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fabric.analysis.deadlock.cause import Need, blocked, cores

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


class TestCores:
    def test_core_excludes_the_tail(self) -> None:
        needs = needs_of((2,), (0,), (3,), (2,), (1,))

        assert [[2, 3]] == cores(needs, {0, 1, 2, 3, 4})

    def test_cores_of_separate_loops_are_separate(self) -> None:
        assert [[0, 2], [1, 3]] == cores(needs_of((2,), (3,), (0,), (1,)), {0, 1, 2, 3})

    def test_core_excludes_a_loop_behind_it(self) -> None:
        assert [[2, 3]] == cores(needs_of((1, 2), (0,), (3,), (2,)), {0, 1, 2, 3})

    def test_node_behind_a_finished_one_is_a_core(self) -> None:
        assert [[1]] == cores(needs_of((1,), (9,)), {0, 1})
