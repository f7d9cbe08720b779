"""``python -m operators.torch``: lists the calls that from_torch can or cannot import."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from typing import Any, Final

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fabric import ConfigurationError, FabricError
from fabric.extend import check_extra, users_code

_PIPED_COLUMNS: Final = 10_000
"""The width of a table that is piped, in characters: every row fits in one line."""


@click.command()
@click.argument("file", required=False, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--list", "lists", is_flag=True, help="without FILE: print all calls that have an importer"
)
def main(file: str | None, lists: bool) -> None:
    """Print all calls of a module that cannot be imported.

    FILE defines model(), which returns a PyTorch module and the arguments of its call. Exit status:
    0 if every call can be imported, 1 if some cannot, 2 for usage and configuration.
    """
    try:
        check_extra("operators.torch", "torch", "torch")
        if file is not None:
            sys.exit(_of_file(file))
        if not lists:
            raise ConfigurationError("expected a FILE, or --list for all calls with an importer")
        _all_calls()
    except FabricError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)


def _of_file(file: str) -> int:
    from operators.torch.listing import plan_of
    from operators.torch.registry import folded

    module, args = _model(file)
    plan = plan_of(module, args, {})
    if not plan.missing:
        click.echo(f"every call that depends on data can be imported, {plan.calls} in all")
        return 0
    table = Table(box=box.SIMPLE)
    for title in ("times", "written", "call", "module", "line", "needed"):
        table.add_column(title, overflow="fold")
    for times, call in folded(plan.missing):
        cells = (f"{times:,}", call.written, call.call, call.module, call.place, call.needed)
        table.add_row(*map(Text, cells))
    piped = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _PIPED_COLUMNS
    Console(width=piped).print(table)
    click.echo(f"calls that cannot be imported: {len(plan.missing)} of {plan.calls}")
    return 1


def _model(file: str) -> tuple[Any, tuple[Any, ...]]:
    sys.path.insert(0, str(Path(file).resolve().parent))
    with users_code("the file"):
        make = runpy.run_path(file).get("model")
    if not callable(make):
        raise ConfigurationError(
            f"{file} defines no model(): expected one that returns (module, args)"
        )
    with users_code("model()"):
        model = make()
    if not isinstance(model, tuple) or len(model) != 2 or not isinstance(model[1], tuple):
        raise ConfigurationError(
            f"{file}: model() returns {type(model).__name__}: expected (module, args), "
            "where args is a tuple"
        )
    return model


def _all_calls() -> None:
    from operators.torch.listing import families

    for family, calls in families().items():
        click.echo(f"{family}:")
        for call in calls:
            click.echo(f"  {call}")


if __name__ == "__main__":
    main()
