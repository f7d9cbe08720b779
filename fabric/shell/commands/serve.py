"""``serve``: simulate a server, and report latency and throughput."""

from __future__ import annotations

from pathlib import Path

import click

from fabric.shell.commands.options import NamedPath, Whole, json_option


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
    from fabric.messages.output import program_prints
    from fabric.shell.serving import Serves
    from fabric.shell.studying import workers_of
    from fabric.timing.machine.terminations import uninterrupted

    with program_prints(as_json=as_json):
        serves = Serves.of(file, folder)
        workers = workers_of(dask, jobs, None)
        try:
            serves.run(workers, as_json=as_json)
        finally:
            with uninterrupted():
                workers.close()
    return serves.conclude(as_json=as_json)
