"""The loss from choosing a design of Qwen's layer on one batch, and the gain from dynamic tiles.

The study minimises nothing, so every design runs on every recorded batch. ``one_batch_mixtral.py``
has Mixtral's layer.

Run: python -m fabric study programs/questions/one_batch.py -o one_batch
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import mean
from typing import Final, TypeAlias

from beyond.recorded import QWEN, Layer
from beyond.savings import PROGRAMS

from fabric import DesignOutcome, Findings, Study, StudyTable

MEGABYTE: Final = 2**20

Cycles: TypeAlias = Mapping[int, Sequence[float]]
"""The cycles of each design, batch by batch."""


def study(layer: Layer = QWEN, budgets: tuple[int, ...] = (512, 128, 64)) -> Study:
    """Return the study of a layer; ``budgets`` limit the on-chip memory, in 2**20 bytes."""
    return Study(
        program=PROGRAMS / "moe.py",
        question=f"How much does choosing a design of {layer.name}'s layer on one batch lose?",
        fixed=layer.fixed,
        space=layer.designs,
        over=layer.batches,
        tables=(
            StudyTable(
                "Chosen on one batch",
                (
                    "tiling",
                    "MB",
                    "chosen",
                    "most often",
                    "times",
                    "lost %",
                    "at most %",
                    "too large",
                ),
                lambda found: chosen_on_one(found, budgets),
                "For each batch, the fastest design that fits on chip is chosen, and runs on the "
                "other batches. The table counts the chosen designs, names the most frequent one, "
                "and has the extra time over the best design for these batches, on average and "
                "at most. Too large: choices that do not fit with another batch.",
            ),
            StudyTable(
                "Static over dynamic tiles",
                ("MB", "static", "dynamic", "mean", "least", "most", "the batch of 64"),
                lambda found: gains(found, budgets),
                "The static and the dynamic design with the fewest mean cycles that fit with every "
                "batch. The ratios are of their mean cycles, and of their cycles with one batch.",
            ),
        ),
    )


def chosen_on_one(
    findings: Findings, budgets: Sequence[int]
) -> Iterator[tuple[str | int | float, ...]]:
    """Yield the loss from choosing on one batch, by tiling and memory."""
    for tiling in ("static", "dynamic"):
        for budget in budgets:
            cycles = _cycles(findings, tiling)
            needs = _numbers(findings, tiling, "on_chip_requirement_bytes")
            fits = {
                design: [each <= budget * MEGABYTE for each in values]
                for design, values in needs.items()
            }
            serve = {design: cycles[design] for design in cycles if all(fits[design])}
            batches = range(len(next(iter(cycles.values()))))
            choices, losses, too_large = [], [], 0
            for batch in batches:
                fitting = [design for design in cycles if fits[design][batch]]
                if not fitting or not serve:
                    continue
                choice = min(fitting, key=lambda design: cycles[design][batch])
                others = [each for each in batches if each != batch]
                best = min(mean(of[each] for each in others) for of in serve.values())
                took = mean(cycles[choice][each] for each in others)
                choices.append(choice)
                losses.append(100 * (took / best - 1))
                too_large += not all(fits[choice])
            if not choices:
                yield tiling, budget, 0, "none fits", 0, "", "", 0
                continue
            ((most, times),) = Counter(choices).most_common(1)
            name = _name(findings, most)
            lost, worst = round(mean(losses), 2), round(max(losses), 2)
            yield tiling, budget, len(set(choices)), name, times, lost, worst, too_large


def gains(findings: Findings, budgets: Sequence[int]) -> Iterator[tuple[str | int | float, ...]]:
    for budget in budgets:
        best: dict[str, int] = {}
        of_best: dict[str, Sequence[float]] = {}
        for tiling in ("static", "dynamic"):
            needs = _numbers(findings, tiling, "on_chip_requirement_bytes")
            cycles = _cycles(findings, tiling)
            serve = [each for each in cycles if max(needs[each]) <= budget * MEGABYTE]
            if serve:
                best[tiling] = min(serve, key=lambda each: mean(cycles[each]))
                of_best[tiling] = cycles[best[tiling]]
        if len(best) == 2:
            static, dynamic = of_best["static"], of_best["dynamic"]
            ratios = [a / b for a, b in zip(static, dynamic, strict=True)]
            yield (
                budget,
                _name(findings, best["static"]),
                _name(findings, best["dynamic"]),
                *(round(each, 4) for each in (mean(static) / mean(dynamic), min(ratios))),
                *(round(each, 4) for each in (max(ratios), ratios[0])),
            )


def _cycles(findings: Findings, tiling: str) -> Cycles:
    return _numbers(findings, tiling, "cycles")


def _numbers(findings: Findings, tiling: str, metric: str) -> Cycles:
    """Return a metric of each design of a tiling that completed with all batches."""
    numbers: dict[int, list[float]] = {}
    for outcome in findings.matching(tiling=tiling):
        assert isinstance(outcome, DesignOutcome)
        values = [run.numbers[metric] for run in outcome.runs if run.status == "completed"]
        if len(values) == len(outcome.runs):
            numbers[outcome.index] = values
    return numbers


def _name(findings: Findings, design: int) -> str:
    setting = next(each.setting for each in findings.outcomes if each.index == design)
    names = [name for name in ("tile_n", "regions") if name in setting]
    return ", ".join(f"{name}={setting[name]}" for name in names)
