"""``serve``: simulate a server, and report latency and throughput."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabric.shell.commands.options import NamedPath, Whole, json_option

if TYPE_CHECKING:
    from fabric.explore.serving.question import Serving
    from fabric.explore.serving.result import ServingResult


@click.command("serve")
@click.option(
    "--jobs",
    metavar="N",
    type=Whole(min=1),
    help="Processes; by default one for each core.",
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Have the workers of a Dask cluster run everything, as in tcp://10.0.0.1:8786.",
)
@click.option(
    "-o",
    "folder",
    metavar="DIR",
    type=NamedPath(path_type=Path, file_okay=False),
    help="Keep numbers, pictures and a page in DIR; the same command continues from there.",
)
@json_option()
@click.argument("file", metavar="CONFIG.toml", type=NamedPath(path_type=Path))
def command(
    jobs: int | None, dask: str | None, folder: Path | None, as_json: bool, file: Path
) -> int:
    """Simulate a server, and report how long users wait at each load."""
    from rich.console import Console

    from fabric.explore.serving.driver import conduct_serving
    from fabric.explore.serving.folder import write_folder
    from fabric.explore.serving.question import open_servings
    from fabric.explore.study.written.terminal import Watch
    from fabric.messages.extras import check_extra
    from fabric.messages.output import program_prints
    from fabric.shell.experiments import STUDY_MODULES, Experiments, shown_command, workers_of

    check_extra("serve", "study", *STUDY_MODULES)
    with program_prints(as_json=as_json):
        servings = open_servings(file)
        workers = workers_of(dask, jobs, None)

        def conduct(serving: Serving, of_serving: Path | None) -> ServingResult:
            with Watch(Console(stderr=True)) as watch:
                return conduct_serving(serving, workers, of_serving, watch, folder)

        experiments: Experiments[Serving, ServingResult]
        experiments = Experiments(
            servings, folder, partial(write_folder, command=shown_command(sys.argv[1:]))
        )
        experiments.run(conduct, workers, as_json=as_json)
    run = servings[: len(experiments.results)]
    pages = [each for each in map(experiments.folder_of, run) if each is not None]
    return experiments.conclude(pages, "servings", as_json=as_json)
