"""Figures 9, 10 and 12 to 15 on hardware with registers in the control of its units.

The workloads of ``real_memory.py`` run on the paper's hardware, on ``wires``, on ``registered``,
and on ``wires`` with each rule of ``registered`` alone. A rule may also change the order in which
loads compete for the HBM, or in which tiles arrive at a shared region, which costs or saves cycles.
So ``wires`` and ``registered`` also run with 4,096 HBM channels instead of 32.

Run: python -m fabric study programs/studies/registers.py -o registers
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Final

from paper.claims import number
from paper.comparisons import Setting, by_workload, rows
from paper.memories import FLAT, Keys, View, workloads
from paper.tables import PROGRAMS
from paper.workloads import listed

from fabric import Findings, Study, StudyTable

_WIRES: Final = {**FLAT, "hardware.channel.interval_cycles": 1}
_RULES: Final = {
    f"{rule}_cycles = {cycles}": {**_WIRES, f"hardware.registers.{rule}_cycles": cycles}
    for rule, cycles in {"wait": 1, "choice": 1, "end": 1, "cost": 2}.items()
}
_REGISTERED: Final = {name: value for rule in _RULES.values() for name, value in rule.items()}
HARDWARE: Final = {"paper": FLAT, "wires": _WIRES, "registered": _REGISTERED}
_MANY: Final = [{**keys, "hardware.hbm.channels": 4096} for keys in (_WIRES, _REGISTERED)]
_CHANGES: Final = {
    **{rule: (_WIRES, keys) for rule, keys in _RULES.items()},
    "wires to registered": (_WIRES, _REGISTERED),
    "the same, 4,096 HBM channels": _MANY,
    "paper to registered": (FLAT, _REGISTERED),
}
"""The hardware before and after each change, by the name of the change."""
_PARTS: Final[Mapping[str, Setting]] = {
    "layers": {"tile_f": 64},
    "layers, shared regions": {"tile_f": 48},
    "attention": {"part": "attention"},
}


def study() -> Study:
    return Study(
        program=PROGRAMS / "moe_or_attention.py",
        question="How many cycles do registers in the control cost, and do the ratios hold?",
        space=listed([*HARDWARE.values(), *_RULES.values(), *_MANY]) * workloads(),
        tables=(
            StudyTable(
                "The workloads: cycles, and changes in percent",
                ("workload", "design", *HARDWARE, *_CHANGES),
                lambda findings: by_workload(findings, _cells),
                "The static tile is the fastest one on the paper's hardware. Units have 4096 FLOPs "
                "per cycle, in shared regions 1024, in attention 2048. Each rule is added to "
                "wires. registered is wires with all four rules.",
            ),
            StudyTable(
                "All points: changes of cycles in percent",
                ("workloads", "change", "least", "median", "largest"),
                _ranges,
            ),
            StudyTable(
                "What the paper compares",
                ("figure", "what", "published", *HARDWARE, "result"),
                lambda findings: rows(findings, HARDWARE.values()),
                "Holds: registered differs from paper by less than 2 %.",
            ),
        ),
    )


def _cells(findings: Findings, setting: Setting) -> tuple[object, ...]:
    def cycles(keys: Keys) -> int:
        return int(number(View(findings, keys), "cycles", **setting))

    more = (100 * (cycles(after) / cycles(before) - 1) for before, after in _CHANGES.values())
    return *map(cycles, HARDWARE.values()), *(f"{each:+.2f}" for each in more)


def _ranges(findings: Findings) -> Iterator[tuple[object, ...]]:
    for part, setting in _PARTS.items():
        for name, pair in _CHANGES.items():
            before, after = (View(findings, keys, setting).outcomes for keys in pair)
            more = [
                100 * (new.numbers["cycles"] / old.numbers["cycles"] - 1)
                for old, new in zip(before, after, strict=True)
            ]
            yield part, name, *(f"{pick(more):+.2f}" for pick in (min, median, max))
