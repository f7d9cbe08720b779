"""``serve``: simulate a server, and report latency and throughput."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import click

from fabric.shell.commands.options import NamedPath, experiment_options, json_option


@click.command("serve")
@experiment_options
@json_option()
@click.argument("file", metavar="CONFIG.toml", type=NamedPath(path_type=Path))
def command(
    jobs: int | None, dask: str | None, folder: Path | None, as_json: bool, file: Path
) -> int:
    """Simulate a server, and report how long users wait at each load."""
    from rich.console import Console

    from fabric.explore.serving.driver import conduct_serving
    from fabric.explore.serving.folder import write_folder
    from fabric.explore.serving.question import Serving, open_servings
    from fabric.explore.serving.result import ServingResult
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

        write = partial(write_folder, command=shown_command(sys.argv[1:]))
        experiments = Experiments[Serving, ServingResult](servings, folder, write)
        experiments.run(conduct, workers, as_json=as_json)
    run = servings[: len(experiments.results)]
    pages = [each for each in map(experiments.folder_of, run) if each is not None]
    return experiments.conclude(pages, "servings", as_json=as_json)
