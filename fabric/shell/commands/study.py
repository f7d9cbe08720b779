"""``study``: many runs of one program, and the designs that nothing beats."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabric.runs.exit_status import ExitStatus
from fabric.runs.terminations import was_terminated
from fabric.shell.commands.options import NamedPath
from fabric.telling.errors import ConfigurationError

if TYPE_CHECKING:
    from fabric.runs.simulation import Mode
    from fabric.study.search import Method, Search
    from fabric.study.workers import Workers

__all__ = ["command"]


@click.command("study")
@click.option(
    "--vary",
    metavar="NAME=VALUES",
    multiple=True,
    help="A parameter, hardware.SECTION.KEY or depth.OPERATOR.INPUT, and what it varies over: "
    "8,16,32, 4..128 in steps (+4) or geometrically (*2); NAME:NAME=8:4,16:8 varies together.",
)
@click.option(
    "-p",
    "parameters",
    metavar="NAME=VALUE",
    multiple=True,
    help="A parameter, hardware key or depth that does not vary.",
)
@click.option(
    "--hardware",
    metavar="FILE.toml",
    type=NamedPath(path_type=Path),
    help="The fabric; by default the paper's.",
)
@click.option(
    "--mode", type=click.Choice(["timing", "functional"]), help="Without data or with it."
)
@click.option(
    "--minimize",
    metavar="METRIC",
    multiple=True,
    help="A number of the report, or extra.NAME; several make a front.",
)
@click.option(
    "--where", metavar="CONDITION", multiple=True, help="As in 'on_chip_requirement_bytes <= 2e6'."
)
@click.option(
    "--jobs",
    metavar="N",
    type=click.IntRange(min=1),
    help="Processes; by default one for each core.",
)
@click.option(
    "--timeout",
    "timeout_seconds",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    help="Give up on a point after so long.",
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Have the workers of a Dask cluster run the points, as in tcp://10.0.0.1:8786.",
)
@click.option(
    "--search",
    "method",
    type=click.Choice(["tpe", "nsga2", "random"]),
    help="Do not run every point: Optuna draws --points of them.",
)
@click.option("--points", metavar="N", type=click.IntRange(min=1), help="How many --search runs.")
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(min=0),
    help="Of --search, by default 0; with --jobs 1 the same points are drawn each time.",
)
@click.option(
    "--storage",
    metavar="URL",
    help="Keep points in this database of Optuna; by default in study.db in the folder.",
)
@click.option(
    "-o",
    "folder",
    metavar="DIR",
    type=NamedPath(path_type=Path, file_okay=False),
    help="Keep points, pictures and a page there; the same command goes on where it was.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.argument(
    "files", metavar="FILE.py...", nargs=-1, required=True, type=NamedPath(path_type=Path)
)
def command(
    vary: tuple[str, ...],
    parameters: tuple[str, ...],
    hardware: Path | None,
    mode: Mode | None,
    minimize: tuple[str, ...],
    where: tuple[str, ...],
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
) -> int:
    """Run the points of studies, or of one PROGRAM.py with --vary, and tell which are best."""
    from fabric.study.opening import Asked, open_study
    from fabric.terminal.output import program_prints

    asked = Asked(
        vary=vary,
        parameters=parameters,
        hardware=hardware,
        mode=mode,
        minimize=minimize,
        where=where,
    )
    with program_prints(as_json=as_json):
        studies = [open_study(file, asked) for file in files]
    from fabric.study.conducting import conduct
    from fabric.study.storage import file_url
    from fabric.study.store import Store
    from fabric.terminal.output import print_json, tell

    search = _search(method, points, seed)
    if storage is None and folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        storage = file_url(folder / "study.db")
    workers = _workers(dask, jobs, timeout_seconds)
    status = 0
    try:
        for study in studies:
            store = Store(study, storage, timeout_seconds)
            result = conduct(
                study,
                workers,
                store,
                lambda _: None,
                timeout_seconds=timeout_seconds,
                search=search,
            )
            if store.ignored:
                tell(store.told_of_ignored())
            print_json(result.as_json())
            if result.interrupted:
                status = ExitStatus.interrupted(
                    signal.SIGTERM if was_terminated() else signal.SIGINT
                )
                break
    finally:
        workers.close()
    return status


def _search(method: Method | None, points: int | None, seed: int | None) -> Search | None:
    from fabric.study.search import Search

    if method is None:
        if points is not None or seed is not None:
            raise ConfigurationError("--points and --seed are of a search: expected --search too")
        return None
    if points is None:
        raise ConfigurationError("--search: expected --points N, how many are to run")
    return Search(method, points, seed or 0)


def _workers(dask: str | None, jobs: int | None, timeout_seconds: float | None) -> Workers:
    if dask is not None:
        from fabric.study.dask_workers import DaskWorkers

        if jobs is not None:
            raise ConfigurationError("--jobs and --dask: expected one of both")
        return DaskWorkers(dask, timeout_seconds)
    from fabric.study.local_workers import LocalWorkers
    from fabric.study.workers import available_cores

    return LocalWorkers(jobs or available_cores(), timeout_seconds)
