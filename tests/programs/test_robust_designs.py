from __future__ import annotations

import numpy as np
import pytest

from fabric import Outcome, Study, grid
from fabric.explore.study.evaluation import Job, ProgramQuestion, known_before
from fabric.explore.study.result import StudyResult, design_outcome
from fabric.explore.study.written.words import varying
from tests.profiles import spread
from tests.programs.loading import PROGRAMS
from tests.programs.studies.made import opened

QUESTIONS = ("robust_design", "robust_design_mixtral", "one_batch", "one_batch_mixtral")
TRACES = PROGRAMS / "data/traces/expert_routing"


@pytest.mark.parametrize("name", QUESTIONS)
def test_recorded_batches_of_64_are_all_inputs(name: str) -> None:
    study = opened(name, "questions")
    model = "mixtral" if "mixtral" in name else "qwen"
    found = [
        np.load(str(each["routing"]))["data"][int(str(each["first_token"])) :][:64]
        for each in study.over
    ]
    (short,), (long,) = (
        [np.load(file)["data"] for file in (TRACES / f"{model}_b{batch}").glob("*.npz")]
        for batch in (64, 1024)
    )
    assert np.array_equal(found[0], short)
    assert np.array_equal(np.concatenate(found[1:]), long)
    assert len(study.held_out) == (8 if name.startswith("robust") else 0)


@pytest.mark.parametrize("name", spread(["robust_design", "robust_design_mixtral"], 1))
def test_designs_can_run_on_the_first_and_last_batch(name: str) -> None:
    study = opened(name, "questions")
    for index in (0, len(study.runs) - 1):
        before = known_before(Job.of(study, study.point(index)))
        assert before.refused is None
        assert before.bounds["cycles"] > 0
    last = ProgramQuestion.of(study).loaded(study.runs[len(study.runs) - 1])[0]
    assert last.parameters["first_token"] == 960
    assert varying(study.space.values) == ["tiling", "tile_n", "regions"]


MEGABYTES = 2**20
CYCLES = {
    ("static", 8): (100, 300, 200),
    ("static", 16): (120, 110, 130),
    ("dynamic", None): (100, 100, 90),
}
BYTES = {
    ("static", 8): (MEGABYTES,) * 3,
    ("static", 16): (3 * MEGABYTES,) * 3,
    ("dynamic", None): (MEGABYTES, 2 * MEGABYTES, MEGABYTES),
}


def _made() -> StudyResult:
    program = PROGRAMS / "moe.py"
    tables = opened("one_batch", "questions").tables
    space = grid(tiling=("static",), tile_n=(8, 16)) + grid(tiling=("dynamic",))
    study = Study(
        program=program,
        space=space * grid(regions=(4,)),
        over=grid(first_token=(0, 1, 2)),
        tables=tables,
    )
    runs = []
    for index, setting in enumerate(study.runs):
        key = (str(setting["tiling"]), setting.get("tile_n"))
        place = index % 3
        numbers = {
            "cycles": CYCLES[key][place],  # type: ignore[index]
            "on_chip_requirement_bytes": BYTES[key][place],  # type: ignore[index]
        }
        runs.append(Outcome(index=index, setting=setting, status="completed", numbers=numbers))
    designs = [
        design_outcome(study, each, [runs[run] for run in study.runs_of(each)])
        for each in range(len(study.space))
    ]
    return StudyResult(study, tuple(designs), runs=tuple(runs))


def test_tables_of_made_up_batches() -> None:
    result = _made()
    chosen, gains = result.filled_tables
    assert not chosen.trouble
    assert not gains.trouble
    # Every design fits into 512 MB. On batch 0 tiles of 8 rows are best. On the other two batches
    # they take 250 cycles on average, and tiles of 16 rows, which both batches choose, take 120.
    lost = 100 * (250 / 120 - 1)
    assert chosen.rows[0] == (
        *("static", 512, 2, "tile_n=16, regions=4", 2),
        *(round(lost / 3, 2), round(lost, 2), 0),
    )
    assert chosen.rows[3] == ("dynamic", 512, 1, "regions=4", 3, 0.0, 0.0, 0)
    ratios = [120 / 100, 110 / 100, 130 / 90]
    assert gains.rows[0] == (
        *(512, "tile_n=16, regions=4", "regions=4"),
        *(round(360 / 290, 4), 1.1, round(max(ratios), 4), 1.2),
    )


def test_pairs_in_another_order_on_banks_are_counted() -> None:
    study = opened("banks", "questions")
    cycles = [each for n in range(12) for each in (100 + n, 1000 + {0: 3, 3: 0}.get(n, n))]
    outcomes = (
        Outcome(index=n, setting=study.space[n], status="completed", numbers={"cycles": each})
        for n, each in enumerate(cycles)
    )
    # Designs 0 to 2 have the same tiles, and designs 0 and 3 the same regions.
    rows = study.tables[0].rows(StudyResult(study, tuple(outcomes)))
    assert list(rows) == [
        ("tiles, same regions", 18, 1, 3.0, 0.3),
        ("regions, same tiles", 12, 2, 2.0, 0.2),
        ("all designs", 66, 5, 3.0, 0.3),
    ]
