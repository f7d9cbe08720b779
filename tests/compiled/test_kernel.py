"""The compiled loop does what its Python says, and a rule that is not kept is noticed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any
from unittest import mock

import numpy as np
import pytest

from fabric import Hardware, Program
from fabric.graph.wiring.elaborate import elaborate
from fabric.graph.wiring.program import hardware_scope
from fabric.timing.compiled import arrays, kernel, kernel_channels, kernel_stages
from fabric.timing.compiled import columns as c
from fabric.timing.compiled.kernel import go_on
from fabric.timing.engine import channel_rule
from fabric.timing.network import Mesh
from operators import LinearOffChipLoad, LinearOffChipStore, Map, SiLU
from tests.compiled.both import both, run
from tests.compiled.odd_programs import FALL_BACK, STAY
from tests.deadlock.cases import CASES
from tests.profiles import spread
from tests.programs.loading import program


class InStep:
    """Stands for the loop: the machine code, and until it differs ``function`` on copies.

    Attributes:
        reasons: why they came back.
        differs: they have done something else.
    """

    def __init__(self, function: Callable[..., tuple[int, ...]]) -> None:
        """Compare ``function``."""
        self.reasons: list[int] = []
        self.differs = False
        self._function = function

    def over(self, **given: Any) -> Callable[..., tuple[int, ...]]:
        """Return both loops over these arrays."""
        machine = go_on.over(**given)

        def call(*integers: int) -> tuple[int, ...]:
            copies = {name: array.copy() for name, array in given.items()}
            expected = () if self.differs else self._asked(copies, integers)
            found = machine(*integers)
            same = all(np.array_equal(copies[name], given[name]) for name in given)
            self.differs |= not same or expected != found
            self.reasons.append(found[0])
            return found

        return call

    def _asked(self, copies: dict[str, Any], integers: tuple[int, ...]) -> tuple[int, ...]:
        try:
            # The hash of a code takes more than 64 bits, and is cut off.
            with np.errstate(over="ignore"):
                pace, horizon, budget = integers
                return tuple(
                    map(int, self._function(**copies, pace=pace, horizon=horizon, budget=budget))
                )
        except IndexError:
            return ()


@contextmanager
def in_step(function: Callable[..., tuple[int, ...]]) -> Iterator[InStep]:
    """Let ``function`` do on copies all that the machine code does."""
    loops = InStep(function)
    with (
        mock.patch.object(arrays, "go_on", loops),
        mock.patch("fabric.timing.compiled.region._BUDGET", 20_000),
    ):
        yield loops


def routed() -> Program:
    """Return a program in which most rules matter, some 400 elements large."""
    return program("top2_moe", tokens=4, experts=4)


def on_a_mesh() -> Program:
    """Return a program whose channels share links."""
    mesh = Mesh(columns=3, rows=2, link_bytes_per_cycle=8)
    with hardware_scope(Hardware(network=mesh)), Program("line", mode="timing") as made:
        rows = LinearOffChipLoad(np.ones((8, 64), np.float32), tile=(1, 64))()
        for _ in range(2):
            rows = Map(SiLU())(rows)
        LinearOffChipStore("y")(rows)
    return made


@pytest.mark.parametrize("build", [routed, CASES["cut_off_sub_tensor"].build, *STAY[2:], on_a_mesh])
def test_in_step(build: Callable[[], Program], tmp_path: Path) -> None:
    """Results and arrays are the same each time the loop comes back."""
    with in_step(go_on.function) as loops:
        found = run(build, "compiled", tmp_path, livelock_cycles=10_000)

    assert found.compiled
    assert not loops.differs
    assert {c.AT_REST, c.ASKS} <= set(loops.reasons)


@pytest.mark.parametrize(
    ("number", "reason"), [(0, c.GROWS), (1, c.RECORDS)], ids=["grows", "records"]
)
def test_reasons(number: int, reason: int, tmp_path: Path) -> None:
    """The programs of which that is said bring it to where its arrays are full."""
    build = STAY[number]
    depths = {edge.key: 100_000 for edge in elaborate(build()).edges}
    found = []
    native = arrays.Arrays.go_on

    def noted(these: arrays.Arrays, *integers: int) -> tuple[int, int]:
        found.append(native(these, *integers))
        return found[-1]

    with mock.patch.object(arrays.Arrays, "go_on", noted), mock.patch.object(arrays, "_LEDGER", 64):
        both(build, tmp_path, depths=depths)
    assert reason in {each[0] for each in found}


def test_tired(tmp_path: Path) -> None:
    """It comes back after so many operations, and goes on where it was."""
    whole = run(routed, "compiled", tmp_path)
    with mock.patch("fabric.timing.compiled.region._BUDGET", 7):
        in_parts = run(routed, "compiled", tmp_path)

    assert whole.state == in_parts.state


MUTATIONS = [
    ("return taken_cycle + backward_cycles", "return taken_cycle"),
    ("channels[row + c.PEAK] += 1", "channels[row + c.PEAK] += 0"),
    ("> set_out:", ">= set_out:"),
    ("used < channels[row + c.DEPTH]", "used <= channels[row + c.DEPTH]"),
    ("min(waited_cycles, backward_cycles)", "0"),
    ("max(now, usable_cycle, next_send_cycle)", "max(now, usable_cycle - 1, next_send_cycle)"),
    ("max(requested_cycle, sent_cycle + forward_cycles)", "max(requested_cycle, sent_cycle)"),
    ("max(requested_cycle, sent_cycle + forward_cycles)", "sent_cycle + forward_cycles"),
    ("code |= seen[first + port]", "code += 0 * seen[first + port]"),
    ("channels[row + c.EMPTY] += waited", "channels[row + c.EMPTY] += 0"),
    ("stages[stage + c.BUSY] += amount", "stages[stage + c.BUSY] += 0"),
    ("stages[stage + c.FLOPS] += amount", "stages[stage + c.FLOPS] += 0"),
    ("ledger[at + 1] = size_bytes", "ledger[at + 1] = 0"),
    ("max(0, stages[stage + c.ARRIVAL] + amount - now)", "amount"),
    ("< marks[(first + best) * 2]", "<= marks[(first + best) * 2]"),
    ("channels[row + c.BARE_SENT] += 1", "channels[row + c.BARE_SENT] += 0"),
    ("else ended_cycle", "else 0"),
    ("if stages[stage + c.TIMES] < amount:", "if stages[stage + c.TIMES] <= amount:"),
    ("control[c.LIVE] -= 1", "pass"),
    ("channels[row + c.CARRIED] += size_bytes", "channels[row + c.CARRIED] += 0"),
    ("slots[slot + c.SET_OUT] = now", "slots[slot + c.SET_OUT] = 0"),
    ("visible_cycle - late_cycles", "visible_cycle"),
]


@pytest.mark.parametrize(("rule", "instead"), spread(MUTATIONS, 4))
def test_mutated(rule: str, instead: str, tmp_path: Path) -> None:
    """A loop that breaks one rule does something else in one of a few programs."""
    with in_step(_mutated(rule, instead)) as loops:
        ragged = partial(program, "ragged_attention", requests=3)
        builds: list[Callable[[], Program]] = [on_a_mesh, *STAY[2:], routed, ragged]
        for build in builds:
            if not loops.differs:
                run(build, "compiled", tmp_path)
    assert loops.differs


def _mutated(rule: str, instead: str) -> Callable[..., tuple[int, ...]]:
    """Return the loop in Python with one of its statements changed."""
    names: dict[str, Any] = {}
    changed = 0
    for module in (channel_rule, kernel_channels, kernel_channels, kernel_stages, kernel):
        names.update({name: each for name, each in vars(module).items() if name not in names})
        for name, each in list(vars(module).items()):
            function = each.function if each is go_on else each
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                text = inspect.getsource(function)
                changed += text.count(rule)
                text = text[text.index("def ") :].replace(rule, instead)
                exec(f"from __future__ import annotations\n{text}", names)
                assert name in names
    assert changed, rule
    loop: Callable[..., tuple[int, ...]] = names["go_on"]
    return loop


def test_fall_back_is_told(tmp_path: Path) -> None:
    """A program that is left to tasks is left by the loop or by what stands around it."""
    with in_step(go_on.function) as loops:
        run(FALL_BACK[-1], "compiled", tmp_path)
    assert (False, True) == (loops.differs, c.FAILS in loops.reasons)
