"""Seconds and joules of a run: its cycles and its events times what the hardware says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from fabric.runs.events import Events, events_of
from fabric.wiring.token_count import TokenPhase

if TYPE_CHECKING:
    from fabric.hardware.prices import EnergyDescription
    from fabric.state.memory_use import MemoryUse
    from fabric.state.run_state import RunState
    from fabric.symbolic.substitution import Substitution
    from fabric.wiring.elaborate import Plan

__all__ = ["Priced", "Spending", "joules_in_all", "priced", "tokens_rate"]

_PICO: Final = 1e-12


@dataclass(frozen=True)
class Spending:
    """The energy that one kind of event took.

    Attributes:
        cause: ``hbm``, ``memory_write``, ``memory_read``, ``fifo``, ``hop``, ``bfloat16_flop`` (and
            so on) or ``static``: a key of ``[energy]`` without its unit.
        amount: of ``unit``; of sizes that data decide, from their means.
        unit: ``bytes``, ``byte hops``, ``FLOPs`` or ``seconds``.
        joules: None where it has no price and there is something to price.
    """

    cause: str
    amount: float | None
    unit: str
    joules: float | None


class _Kind(NamedTuple):
    cause: str
    amount: float
    unit: str
    picojoules: float | None


class Priced(NamedTuple):
    """What a report says in seconds, joules and tokens; see there."""

    seconds: float | None
    joules: float | None
    spent: tuple[Spending, ...]
    stands_for_runs: int
    tokens: int | None
    token_phase: TokenPhase | None
    tokens_per_second: float | None
    tokens_per_joule: float | None
    time_to_first_token_seconds: float | None


def priced(plan: Plan, state: RunState, used: MemoryUse, sizes: Substitution) -> Priced:
    """Return what a run of ``plan`` that completed took, in the units its hardware prices.

    Args:
        plan: the program.
        state: after the run.
        used: of the memories.
        sizes: that the symbols of the program had.
    """
    program = plan.program
    hardware, stated, runs = program.hardware, program.token_count, program.stands_for_runs
    frequency_hz = hardware.clock.frequency_hz
    seconds = None if frequency_hz is None else state.cycles / frequency_hz
    spent: tuple[Spending, ...] = ()
    if hardware.energy.is_stated:
        spent = _spent(hardware.energy, events_of(plan, state, used, sizes), seconds)
    joules = joules_in_all(spent)
    tokens = None if stated is None else stated.count
    phase = None if stated is None else stated.phase
    all_seconds = None if seconds is None else seconds * runs
    return Priced(
        seconds,
        joules,
        spent,
        runs,
        tokens,
        phase,
        tokens_rate(tokens, all_seconds),
        tokens_rate(tokens, None if joules is None else joules * runs),
        all_seconds if phase == "prefill" else None,
    )


def _spent(
    energy: EnergyDescription, events: Events, seconds: float | None
) -> tuple[Spending, ...]:
    """Return what each cause came to, those of which there was nothing included."""
    kinds = (
        _Kind("hbm", float(events.hbm_bytes), "bytes", energy.hbm_picojoules_per_byte),
        _Kind(
            "memory_write",
            float(events.memory_written_bytes),
            "bytes",
            energy.memory_write_picojoules_per_byte,
        ),
        _Kind(
            "memory_read",
            float(events.memory_read_bytes),
            "bytes",
            energy.memory_read_picojoules_per_byte,
        ),
        _Kind("fifo", float(events.fifo_bytes), "bytes", energy.fifo_picojoules_per_byte),
        _Kind("hop", float(events.hop_bytes), "byte hops", energy.hop_picojoules_per_byte),
        *(
            _Kind(f"{dtype}_flop", float(count), "FLOPs", energy.flop_picojoules(dtype))
            for dtype, count in events.flops.items()
        ),
    )
    found = [Spending(each.cause, each.amount, each.unit, _joules(each)) for each in kinds]
    watts = energy.static_watts
    static = None if watts is None or seconds is None else watts * seconds
    if watts == 0:
        static = 0.0
    return (*found, Spending("static", seconds, "seconds", static))


def joules_in_all(spent: Sequence[Spending]) -> float | None:
    """Return the sum; None where a cause that there was is not priced."""
    known = [each.joules for each in spent if each.joules is not None]
    return sum(known) if len(known) == len(spent) and spent else None


def tokens_rate(tokens: int | None, quantity: float | None) -> float | None:
    """Return tokens per second or per joule; None where either is not known, or is 0."""
    return tokens / quantity if tokens is not None and quantity else None


def _joules(kind: _Kind) -> float | None:
    if not kind.amount:
        return 0.0
    return None if kind.picojoules is None else kind.amount * kind.picojoules * _PICO
