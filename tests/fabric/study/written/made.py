from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import fabric as fab
from fabric.explore.study.outcome import METRICS, Status
from fabric.explore.study.result import StudyResult, design_outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure


BOTH: Final = ("cycles", "on_chip_requirement_bytes")
HOSTILE: Final = "</script><script>alert(1)</script><b>&amp;\"'{{data}}$x^$\x1b[31m"


def completed(index: int, study: fab.Study, **numbers: float | None) -> fab.Outcome:
    setting = study.space[index]
    metrics = dict.fromkeys(METRICS) | numbers
    return fab.Outcome(
        index=index, setting=setting, status="completed", numbers=metrics, wall_seconds=index / 4
    )


def design() -> StudyResult:
    study = fab.Study(
        name="design",
        program=Path("programs/moe.py"),
        question="Which tile, how many regions and how many channels?",
        space=fab.grid({"tile_n": (8, 16, 32, 64), "regions": (4, 8, 128)})
        * fab.grid({"hardware.hbm.channels": (16, 32)}),
        fixed={"batch": 64, "routing": "programs/data/routing.npz"},
        minimize=BOTH,
        where=("off_chip_traffic_bytes <= 4000000",),
    )
    runs = []
    for index in range(len(study.space)):
        tile, regions, channels = study.space[index].values()
        assert isinstance(tile, int)
        assert isinstance(regions, int)
        assert isinstance(channels, int)
        cycles = 40_000_000 // (tile * channels) + 300 * regions
        on_chip = 4_096 * tile * regions + 64 * channels
        run = completed(
            index,
            study,
            cycles=cycles,
            on_chip_requirement_bytes=on_chip,
            off_chip_traffic_bytes=32_000_000 // tile,
            flops=7_179_610_112,
            compute_utilization=round(4 / tile, 6),
        )
        runs.append(replace(run, numbers=run.numbers | {"extra.rows": tile * 7}))
    ends: dict[int, fab.Outcome] = {
        8: _proved(runs[8], "pruned", 9),
        10: _proved(runs[10], "pruned", 9),
        22: _proved(runs[22], "pruned", 13),
        4: _proved(runs[4], "infeasible", "off_chip_traffic_bytes <= 4000000"),
        15: _failed(runs[15], "deadlock", "FAB-D001 at cycle 120: a waits for b", "FAB-D001"),
        17: _failed(runs[17], "deadlock", "FAB-D001 at cycle 377: c waits for d", "FAB-D001"),
        5: _failed(runs[5], "refused", "programs/moe.py:46: regions is 128: expected at most 64"),
        20: _failed(runs[20], "timeout", "took longer than 5 s"),
    }
    outcomes = tuple(ends.get(each.index, each) for each in runs)
    return StudyResult(study, outcomes, resumed=4, wall_seconds=12.5)


def one_metric() -> StudyResult:
    study = fab.Study(
        name="depths",
        program=Path("programs/moe.py"),
        space=fab.grid({"depth.map_1.0": (2, 4, 8, 16, 32)}),
        minimize=("cycles",),
    )
    cycles = (900, 700, 500, 500)
    outcomes = tuple(completed(n, study, cycles=each) for n, each in enumerate(cycles))
    return StudyResult(study, outcomes, interrupted=True)


def three_metrics(points: Iterable[int] = range(60)) -> StudyResult:
    study = fab.Study(
        name="three",
        program=Path("programs/moe.py"),
        space=fab.grid(
            {
                "tiling": ("static", "dynamic", None),
                "flag": (True, False),
                "routing": ("data/a.npz", "data/b.npz"),
                "scale": (0.5, 1.0, 1.5, 2.0, 10.0),
            }
        ),
        minimize=(*BOTH, "extra.energy"),
    )
    runs = []
    for index in points:
        energy = 1.5 * ((7 * index) % 13) + 0.25
        run = completed(
            index,
            study,
            cycles=1000 + (37 * index + 50) % 101,
            on_chip_requirement_bytes=10 ** (2 + (5 * index + 3) % 6),
        )
        runs.append(replace(run, numbers=run.numbers | {"extra.energy": energy}))
    return StudyResult(study, tuple(runs))


def _judge(findings: fab.Findings) -> fab.Judgement:
    static = findings.value("cycles", tiling="static", tile_n=16)
    dynamic = findings.value("cycles", tiling="dynamic")
    assert static is not None
    assert dynamic is not None
    return fab.Judgement(
        f"{static / dynamic:.2f}", fab.Verdict.CONTRADICTED, "with equal FLOPs per cycle"
    )


def _asks_amiss(findings: fab.Findings) -> fab.Judgement:
    return fab.Judgement(str(findings.value("cycles", tiling="none")), fab.Verdict.REPRODUCED)


def _draw(findings: fab.Findings, figure: Figure) -> None:
    axes = figure.subplots()
    axes.bar([str(each.index) for each in findings.outcomes], [1] * len(findings.outcomes))


def _draws_wrongly(findings: fab.Findings, figure: Figure) -> None:
    del findings, figure
    raise ZeroDivisionError("on purpose")


def paper() -> StudyResult:
    study = fab.Study(
        name="figure_9",
        program=Path("programs/moe.py"),
        question="How much faster are dynamic tiles?",
        space=fab.zipped(tiling=("static", "static", "dynamic"), tile_n=(8, 16, None)),
        known=(
            fab.KnownValue({"tiling": "static", "tile_n": 8}, "cycles", 2_000_000, "figure 9"),
            fab.KnownValue({"tiling": "dynamic"}, "cycles", 1_000_000, "figure 9"),
            fab.KnownValue({"tile_n": 512}, "off_chip_traffic_bytes", 3.5e9, "figure 9"),
        ),
        claims=(
            fab.Claim("dynamic tiles are faster", "section 5.2", "1.87 times", _judge),
            fab.Claim(
                "they need less memory",
                "section 5.2",
                "0.5",
                lambda _: fab.Judgement("0.5", fab.Verdict.REPRODUCED),
            ),
            fab.Claim("they are nice", "section 6", "very", attrgetter("niceness")),
            fab.Claim("of a missing point", "section 6", "3", _asks_amiss),
        ),
        pictures=(
            fab.Picture("bars", "Cycles of all tilings", _draw, "As in the paper's figure 9."),
            fab.Picture("wrong", "One that fails", _draws_wrongly),
        ),
    )
    cycles = (2_100_000, 1_800_000, 990_000)
    return StudyResult(
        study, tuple(completed(n, study, cycles=each) for n, each in enumerate(cycles))
    )


def hostile() -> StudyResult:
    study = fab.Study(
        name=HOSTILE,
        program=Path("programs/moe.py"),
        question=HOSTILE,
        space=fab.grid({HOSTILE: (HOSTILE, 1), "Cycles": (1, 2), "index": (2**70, 0)}),
        fixed={"other": HOSTILE},
        minimize=(*BOTH,),
        known=(fab.KnownValue({HOSTILE: 1}, "cycles", 1.0, HOSTILE),),
        claims=(
            fab.Claim(
                HOSTILE,
                HOSTILE,
                HOSTILE,
                lambda _: fab.Judgement(HOSTILE, fab.Verdict.UNEQUAL, HOSTILE),
            ),
        ),
        pictures=(fab.Picture(f"../{HOSTILE}", HOSTILE, _draw, HOSTILE),),
    )
    runs = [
        completed(n, study, cycles=n + 1, on_chip_requirement_bytes=8 - n)
        for n in range(len(study.space))
    ]
    runs[3] = _failed(runs[3], "error", HOSTILE)
    runs[4] = replace(runs[4], numbers=runs[4].numbers | {"extra.x_1": HOSTILE})
    return StudyResult(study, tuple(runs))


def nothing() -> StudyResult:
    result = one_metric()
    outcomes = tuple(_failed(each, "refused", "no such depth") for each in result.outcomes)
    return replace(result, outcomes=outcomes, interrupted=False)


def over_inputs() -> StudyResult:
    study = fab.Study(
        name="over",
        program=Path("programs/moe.py"),
        question="Which tile serves all of these?",
        space=fab.grid({"tile_n": (8, 16, 32, 64, 128), "tiling": ("static", "dynamic")}),
        over=fab.zipped(
            routing=[f"data/{name}.npz" for name in ("a", "b", "c", "d", "e", "f")],
            seed=(0, 0, 0, 1, 1, 1),
        ),
        hold_out=2,
        minimize=("p95:cycles", "mean:on_chip_requirement_bytes"),
        where=("worst:off_chip_traffic_bytes <= 2510000",),
    )
    runs: dict[int, fab.Outcome] = {}
    for index, setting in enumerate(study.runs):
        design, place = divmod(index, len(study.over))
        tile = setting["tile_n"]
        assert isinstance(tile, int)
        numbers = dict.fromkeys(METRICS) | {
            "cycles": 9_000_000 // tile + (design * 7 + place * 11) % 13 * 15_000,
            "on_chip_requirement_bytes": 4_096 * tile + 512 * (place % 3) * (design % 2),
            "off_chip_traffic_bytes": 2_500_000 + 1_000 * place * (design % 3),
        }
        runs[index] = fab.Outcome(
            index=index, setting=setting, status="completed", numbers=numbers, wall_seconds=0.25
        )
        if design == 4 and place > 0:
            runs[index] = _proved(runs[index], "pruned", 2)
        if design == 7:
            runs[index] = (
                _failed(runs[index], "deadlock", "FULL loop a>b>a at cycle 120")
                if place == 2
                else _proved(runs[index], "skipped", None)
            )
    ended = [
        design_outcome(study, design, [runs[run] for run in study.runs_of(design)])
        for design in range(len(study.space))
    ]
    front = set(StudyResult(study, tuple(ended)).front)
    there = [
        run
        for index, run in sorted(runs.items())
        if not study.is_held_out(index) or study.design_of(index) in front
    ]
    return StudyResult(study, tuple(ended), 1, 12.5, runs=tuple(there), resumed_runs=5)


RESULTS: Final = {
    "design": design,
    "one_metric": one_metric,
    "three_metrics": three_metrics,
    "paper": paper,
    "hostile": hostile,
    "nothing": nothing,
    "over": over_inputs,
}


def _proved(run: fab.Outcome, status: str, by: int | str | None) -> fab.Outcome:
    bounds = {name: int(run.numbers[name] or 0) // 2 for name in BOTH}
    return fab.Outcome(
        index=run.index,
        setting=run.setting,
        status=status,  # type: ignore[arg-type]
        bounds=bounds | {"on_chip_requirement_bytes": run.numbers["on_chip_requirement_bytes"]},
        exact=("on_chip_requirement_bytes",),
        pruned_by=by,
    )


def _failed(run: fab.Outcome, status: Status, reason: str, code: str | None = None) -> fab.Outcome:
    return run.point.outcome(status, reason=reason, code=code)
