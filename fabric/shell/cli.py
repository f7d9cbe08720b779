"""The command line: one module per sub-command, imported when it is used.

Exit status: 0 completed, 1 wrong or failed, 2 usage, shape or configuration error, 3 deadlock or
livelock, 4 output not written, 128 + n interrupted by signal n. ``--json`` always prints an object.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import io
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Final

import click
from typing_extensions import override

from fabric.messages.addresses import without_passwords
from fabric.messages.errors import Deadlock, FabricError, error_text
from fabric.messages.extras import installing
from fabric.messages.output import ExitStatus, flush_stdout, tell
from fabric.messages.place import raising_place
from fabric.messages.users_code import Interrupted, users_values
from fabric.shell.groups import Group
from fabric.shell.json_object import allow_one_object, print_json
from fabric.timing.machine.terminations import Terminations

_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of writes to an open file."""

_EXTRAS: Final = {"matplotlib": "plots", "torch": "torch", "transformers": "torch"}
"""Extras by the modules that users' files import."""

_COMMANDS: Final = (
    "new",
    "run",
    "check",
    "graph",
    "trace",
    "study",
    "size",
    "place",
    "serve",
    "rtl",
    "operators",
    "examples",
)

_COMPLETION: Final = """\b
Completion for step-fabric in bash; with zsh_source or fish_source in those shells:
  eval "$(_STEP_FABRIC_COMPLETE=bash_source step-fabric)"
"""


class _Commands(Group):
    # Each sub-command is the ``command`` of its module in ``fabric.shell.commands``.

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"fabric.shell.commands.{cmd_name}")
        command: click.Command = module.command
        return command


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted:
        return
    # Reading metadata of packages takes milliseconds.
    from importlib.metadata import PackageNotFoundError, version

    try:
        text = version("step-fabric")
    except PackageNotFoundError:
        text = "not installed"
    click.echo(f"step-fabric {text}, Python {sys.version.split()[0]}")
    context.exit()


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]}, epilog=_COMPLETION
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and exit.",
)
def command_line() -> None:
    """Run Streaming Tensor Programs on an emulated dataflow fabric."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line ``arguments``, by default the process's, and return the exit status."""
    status = _main(arguments)
    try:
        flush_stdout()
    except OSError as error:
        tell(f"fabric: {error.filename}: {error.strerror}")
        return status or ExitStatus.UNWRITTEN
    return status


def _main(arguments: Sequence[str] | None) -> int:
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the parent process
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115
    # A program has many long-lived objects: with the default thresholds, garbage collection takes
    # a tenth of the time of a short run, and more with a trace.
    gc.set_threshold(500_000, 50, 1_000)
    # Products of tiles are small, so that threads of OpenBLAS mostly wait for each other: up to 35
    # times the time if other processes need the cores.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    fields: dict[str, object] = {}  # of the JSON object, as a command sets them
    allow_one_object()
    terminations = Terminations()
    try:
        with terminations.handled(), users_values():
            status: int | None = command_line.main(arguments, standalone_mode=False, obj=fields)
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        tell(shown.getvalue().rstrip())
        return _fail(arguments, fields, ExitStatus.USAGE, error.format_message(), say=False)
    except BaseException as error:  # noqa: BLE001 - the last place that can still print the object
        cause = error.__cause__ if isinstance(error, click.exceptions.Abort) else None
        error = cause or error
        if isinstance(error, KeyboardInterrupt | click.exceptions.Abort):
            number = error.number if isinstance(error, Interrupted) else terminations.number
            status = ExitStatus.interrupted(number)
            outcome = {"status": "interrupted", "error": None}
            return _fail(arguments, fields, status, "interrupted", outcome=outcome)
        if isinstance(error, SystemExit) and raising_place(error) is None:
            return 1  # click ends this way if standard output is closed
        return _fail_with(error, arguments, fields)
    return status or 0


def _fail_with(error: BaseException, arguments: list[str], fields: dict[str, object]) -> int:
    if isinstance(error, FabricError):
        status = ExitStatus.DEADLOCK if isinstance(error, Deadlock) else ExitStatus.USAGE
        cause = error.__cause__
        extra = _EXTRAS.get(cause.name or "") if isinstance(cause, ModuleNotFoundError) else None
        if extra is not None:
            error.message += f": expected the extra {extra}, as in {installing(extra)}"
        return _fail(arguments, fields, status, error.message, error.file, error.line)
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        status = ExitStatus.UNWRITTEN if error.errno in _NO_ROOM else ExitStatus.USAGE
        return _fail(arguments, fields, status, reason, error.filename)
    if not isinstance(error, Exception):
        file, line = raising_place(error) or (None, None)
        return _fail(arguments, fields, ExitStatus.USAGE, f"raised {error_text(error)}", file, line)
    tell("".join(traceback.format_exception(error)).rstrip())
    message = without_passwords(f"a fault of the fabric: {type(error).__name__}: {error}")
    return _fail(arguments, fields, ExitStatus.WRONG, message)


def _fail(
    arguments: list[str],
    fields: dict[str, object],
    status: int,
    message: str,
    file: str | None = None,
    line: int | None = None,
    *,
    say: bool = True,
    outcome: Mapping[str, object] | None = None,
) -> int:
    if say:
        tell(f"fabric: {FabricError(message, file=file, line=line)}")
    if "--json" in arguments:
        if outcome is None:
            error = {"message": message, "file": file, "line": line}
            outcome = {"status": "error", "error": error}
        with contextlib.suppress(OSError):  # a full disk has been reported
            print_json({**fields, **outcome})
    return status
