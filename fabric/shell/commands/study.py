"""``study``: run many designs of a program, and report the best."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

# Any: fields of `StudyOptions` and `Options`.
from typing import TYPE_CHECKING, Any

import click

from fabric.messages.errors import ConfigurationError
from fabric.shell.commands.options import (
    NamedPath,
    Whole,
    experiment_options,
    hold_out_option,
    json_option,
    run_options,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fabric.explore.study.opening import StudyOptions
    from fabric.explore.study.search import Method, Search
    from fabric.explore.study.study import Study


@click.command("study")
@click.option(
    "--vary",
    metavar="NAME=VALUES",
    multiple=True,
    help="A parameter, hardware.SECTION.KEY, depth.OPERATOR.INPUT or hop.OPERATOR.INPUT, and its "
    "values, as in 8,16,32; 4..128+4 for steps of 4; 4..128*2 for factors of 2; 1+1,3+4 for hops, "
    "cycles forward and back. NAME:NAME=8:4,16 varies two names together: 8 and 4, then 16 and the "
    "second name's default.",
)
@click.option(
    "--over",
    metavar="NAME=VALUES",
    multiple=True,
    help="Inputs, written like --vary. Every design runs with every input, and metrics are "
    "mean:METRIC, worst:METRIC, p95:METRIC, median:METRIC or least:METRIC.",
)
@hold_out_option("Hold N inputs out; at the end, run the chosen designs with these inputs, too.")
@click.option(
    "--again",
    metavar="NAME=VALUES",
    multiple=True,
    help="At the end, run the designs on the front again with other values, as in "
    "hardware.hbm.model=banked.",
)
@click.option(
    "-p",
    "parameters",
    metavar="NAME=VALUE",
    multiple=True,
    help="A parameter, hardware key, depth or hop that does not vary.",
)
@click.option(
    "--hardware",
    metavar="FILE.toml",
    type=NamedPath(path_type=Path),
    help="A hardware file, or the name of one that comes with the fabric; by default the paper's.",
)
@run_options("mode", "exact", "placement", "livelock_cycles")
@click.option(
    "--minimize",
    metavar="METRIC",
    multiple=True,
    help="A metric to minimise: a number of the report, or extra.NAME; several make a front.",
)
@click.option(
    "--where",
    metavar="CONDITION",
    multiple=True,
    help="A condition that points must meet, as in 'on_chip_requirement_bytes <= 2e6'.",
)
@experiment_options
@click.option(
    "--timeout",
    "timeout_seconds",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    help="Give up on a point after this time.",
)
@click.option(
    "--search",
    "method",
    type=click.Choice(["tpe", "nsga2", "random"]),
    help="Run only --points points, which Optuna draws.",
)
@click.option("--points", metavar="N", type=Whole(min=1), help="Number of points of --search.")
@click.option(
    "--seed",
    metavar="N",
    type=Whole(min=0),
    help="The seed of --search, 0 by default; with --jobs 1 the same points are drawn each time.",
)
@click.option(
    "--storage",
    metavar="URL",
    help="Keep points in this database; by default in study.db in the folder.",
)
@json_option()
@click.argument(
    "files", metavar="FILE.py...", nargs=-1, required=True, type=NamedPath(path_type=Path)
)
def command(
    options: dict[str, Any],
    jobs: int | None,
    timeout_seconds: float | None,
    dask: str | None,
    method: Method | None,
    points: int | None,
    seed: int | None,
    storage: str | None,
    folder: Path | None,
    as_json: bool,
    files: tuple[Path, ...],
    **choices: Any,
) -> int:
    """Run the points of studies, or of one PROGRAM.py with --vary, and report the best."""
    from rich.console import Console

    from fabric.explore.study.driver import conduct, run_again
    from fabric.explore.study.opening import StudyOptions
    from fabric.explore.study.result import StudyResult
    from fabric.explore.study.session import BaseStore
    from fabric.explore.study.store import Store
    from fabric.explore.study.study import Study
    from fabric.explore.study.written.folder import write_folder, write_overview
    from fabric.explore.study.written.terminal import Watch
    from fabric.messages.extras import check_extra
    from fabric.messages.output import program_prints, tell
    from fabric.runs.options import Options
    from fabric.shell.experiments import STUDY_MODULES, Experiments, shown_command, workers_of

    command = shown_command(sys.argv[1:])
    study_options = StudyOptions(options=Options(**options), **choices)
    search = _search(method, points, seed)
    check_extra("study", "study", *STUDY_MODULES)
    with program_prints(as_json=as_json):
        studies = _opened(files, study_options)
        url = _storage(storage, folder)
        workers = workers_of(dask, jobs, timeout_seconds)

        def run(study: Study, search: Search | None) -> StudyResult:
            store = BaseStore() if url is None else Store(study, url, timeout_seconds)
            with Watch(Console(stderr=True)) as watch:
                result = conduct(study, workers, store, watch, search)
            if isinstance(store, Store) and store.ignored:
                tell(f"fabric: {store.ignored_note()}")
            tell(f"{study.name}: {result.wall_seconds:.1f} s")
            return result

        def answer(study: Study, _folder: Path | None) -> StudyResult:
            result = run_again(run(study, search), lambda repeated: run(repeated, None))
            return replace(result, command=command)

        experiments = Experiments[Study, StudyResult](studies, folder, write_folder)
        experiments.run(answer, workers, as_json=as_json)
    if folder is not None and len(studies) > 1:
        experiments.unwritten.extend(write_overview(experiments.results, folder))
    answered = all(each.answered for each in experiments.results)
    pages = [] if folder is None else [folder]
    return experiments.conclude(pages, "studies", as_json=as_json, answered=answered)


def _opened(files: Sequence[Path], options: StudyOptions) -> list[Study]:
    from fabric.explore.study.opening import open_study

    studies = [open_study(file, options) for file in files]
    files_of: dict[str, Path] = {}
    for study, file in zip(studies, files, strict=True):
        other = files_of.setdefault(study.name, file)
        if other is not file:
            raise ConfigurationError(
                f"study {study.name} is in {other}, too: expected each name once", file=str(file)
            )
    return studies


def _search(method: Method | None, points: int | None, seed: int | None) -> Search | None:
    if method is None:
        if points is not None or seed is not None:
            raise ConfigurationError("--points and --seed need a search: expected --search, too")
        return None
    if points is None:
        raise ConfigurationError("--search: expected --points N, the number of points to run")
    from fabric.explore.study.search import Search

    return Search(method, points, seed or 0)


def _storage(url: str | None, folder: Path | None) -> str | None:
    if url is not None or folder is None:
        return url
    from fabric.explore.study.storage import file_url

    folder.mkdir(parents=True, exist_ok=True)
    return file_url(folder / "study.db")
