"""What sizing found, on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from fabric.messages.telling.families import families
from fabric.messages.telling.sheet import SHOWN, Rows, Sheet, Title, line
from fabric.messages.telling.wording import counted, visible

if TYPE_CHECKING:
    from fabric.explore.sizing.result import Input, Sizing

__all__ = ["hops_text", "sizing_sheet"]

_HOPS_SHOWN: Final = 4


def sizing_sheet(sizing: Sizing, shown: int = SHOWN) -> Sheet:
    """Yield the answer, what is known of it, and the tables; ``shown`` rows of channels at most."""
    yield line((visible(sizing.program), "bold"), f"  {sizing.goal}")
    for sentence in _sentences(sizing):
        yield line(sentence)
    yield from _channels(sizing, shown)
    yield from _methods(sizing)
    yield from _inputs(sizing)
    yield from _held_out(sizing)


def _sentences(sizing: Sizing) -> list[str]:
    """Return the answer and what is known of it."""
    unit = sizing.objective.removesuffix("s")
    kept = "" if sizing.keeps else "; they miss the goal"
    sentences = [
        f"{counted(sizing.cost, unit)} of channels, {sizing.cost_before:,} as it is wired, "
        f"found by "
        f"{sizing.method}{kept}."
    ]
    if sizing.lower_bound >= sizing.cost:
        sentences.append("No depths that keep the goal cost less.")
    else:
        above = sizing.cost - sizing.lower_bound
        percent = f", {100 * above / sizing.cost:.1f} %" if 1000 * above >= sizing.cost else ""
        sentences.append(
            f"Lower bound {counted(sizing.lower_bound, unit)}; this answer is at most "
            f"{counted(above, unit)} above it{percent}."
        )
    if sizing.is_placed:
        sentences.append("For runs on the same mesh, with units on the same sites.")
    if sizing.hops:
        sentences.append(f"For runs with {hops_text(sizing.hops)}.")
    if len(sizing.inputs) == 1:
        sentences.append(_cycles(sizing.inputs[0]))
    if sizing.truth == "proved":
        sentences.append("Proved from the record of one run: its units do the same at any depths.")
    elif sizing.keeps:
        sentences.append(f"Validated by a run, not proved: {'; '.join(sizing.reasons)}.")
    if sizing.settled is not None:
        sentences.append(f"{counted(sizing.repeats, 'input')} back to back; {sizing.settled}.")
    return sentences


def hops_text(hops: Mapping[str, str]) -> str:
    """Return the options with which runs have ``hops``, the first of many."""
    shown = " ".join(f"--hop {visible(name)}={hop}" for name, hop in [*hops.items()][:_HOPS_SHOWN])
    rest = len(hops) - _HOPS_SHOWN
    return f"{shown} and {rest:,} more" if rest > 0 else shown


def _cycles(run: Input) -> str:
    """Say how long runs take."""
    now = "gets stuck" if run.cycles_before is None else f"{run.cycles_before:,}"
    found = "it gets stuck" if run.cycles is None else f"{counted(run.cycles, 'cycle')}"
    allowed = "" if run.limit_cycles is None else f"; {run.limit_cycles:,} are allowed"
    return f"A run takes {found}: {now} as wired, {run.cycles_unbounded:,} without limits{allowed}."


def _channels(sizing: Sizing, shown: int) -> Sheet:
    alike = families(
        sizing.channels,
        lambda channel: channel.option,
        lambda channel: channel.element_bytes,
        lambda channel: (channel.depth_before, channel.depth, channel.least_depth, channel.binds),
    )
    rows = [
        (
            title,
            len(its),
            its[0].depth_before,
            its[0].depth,
            its[0].least_depth,
            sum(channel.depth * channel.element_bytes for channel in its),
            its[0].binds,
        )
        for title, its in alike
    ]
    rows.sort(key=lambda row: -row[5])
    title = "Channels by bytes"
    yield Title(title, f", {len(sizing.channels):,} of them, alike ones in one row")
    columns = ("channel", "channels", "now", "depth", "at least", "bytes", "why not less")
    yield Rows(columns, rows, shown)


def _methods(sizing: Sizing) -> Sheet:
    rows = [
        (
            each.method,
            each.cost,
            "stuck" if each.cycles is None and each.cost is not None else each.cycles,
            each.keeps,
            each.note,
        )
        for each in sizing.methods
    ]
    proved = sizing.truth == "proved"
    source = "from one record" if proved else "the others from the record of a run with the first"
    yield Title("The methods", f", {source}")
    columns = ("method", sizing.objective, "cycles", "keeps the goal", "")
    yield Rows(columns, rows)


def _inputs(sizing: Sizing) -> Sheet:
    if len(sizing.inputs) == 1:
        return
    rows = [
        (each.name, each.cycles_before, each.cycles, each.cycles_unbounded, each.limit_cycles)
        for each in sizing.inputs
    ]
    yield Title("The inputs", ", the depths serve all of them")
    columns = ("input", "cycles now", "cycles", "without limits", "allowed")
    yield Rows(columns, rows)


def _held_out(sizing: Sizing) -> Sheet:
    if not sizing.held_out:
        return
    violated = len(sizing.violated)
    note = f", goal missed by {violated:,} of {len(sizing.held_out):,}"
    rows = [
        (
            each.name,
            "stuck" if each.cycles is None else each.cycles,
            each.limit_cycles,
            not each.violated,
        )
        for each in sizing.held_out
    ]
    yield Title("Inputs held out", note)
    yield Rows(("input", "cycles", "allowed", "keeps the goal"), rows)
