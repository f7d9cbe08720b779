"""The prompt of a run that is held: where it is, what channels hold, and on."""

from __future__ import annotations

import cmd
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from typing_extensions import override

from fabric.machine.terminations import was_terminated
from fabric.shell.breaks import Break
from fabric.shell.looking import print_channel, print_channels, print_tile, print_unit, print_where
from fabric.telling.errors import FabricError
from fabric.terminal.output import print_text, printed

if TYPE_CHECKING:
    from rich.console import Console

    from fabric.runs.stepped import SteppedRun

__all__ = ["Prompt"]

_HELP: Final = """\
where               what every unit does in this cycle
unit NAME           one unit: what it waits for, where its cycles went, its channels
channel             all channels, those that hold most first
channel NAME        one channel, OPERATOR.INPUT: what it holds
tile CHANNEL [N]    the value it holds, the oldest or number N
step [N]            go on to the next cycle in which something moves, N times
go CYCLE            go on to a cycle
go UNIT:ELEMENT     go on until a unit takes so many elements
                    from its first input; UNIT.INPUT:ELEMENT is from another
go                  go on to the end, and print the report
quit                abandon the run
Ctrl-C holds a run that goes on; Ctrl-D lets it go on to its end.
"""


class Prompt(cmd.Cmd):
    """Reads commands about a held run until it is to go on to its end, or is left.

    Attributes:
        left: the run is to be abandoned.
    """

    def __init__(self, run: SteppedRun, reached: str = "") -> None:
        """Ask about ``run``, which is held where it has ``reached`` what was to be waited for."""
        super().__init__()
        self.left = False
        self._run: Final = run
        self._reached: Final = reached
        self._asks: Final = sys.stdin.isatty()
        self.use_rawinput = self._asks
        self.prompt = ""
        self._place()

    def ask(self) -> None:
        """Read commands and do what they say."""
        self._say_where(self._reached)
        while True:
            try:
                self.cmdloop()
            except KeyboardInterrupt:
                if self._run.closed or was_terminated():
                    raise
                print_text(f"\nheld at cycle {self._run.cycle:,}; quit leaves\n")
                self._place()
            else:
                return

    def _place(self) -> None:
        # Where nobody types, nobody needs to be asked.
        self.prompt = f"(cycle {self._run.cycle:,}) " if self._asks else ""

    def _say_where(self, reached: str = "") -> None:
        run = self._run
        end = ", where it is over" if run.over else ""
        end += reached and f": {reached}"
        print_text(f"{run.state.program} is held at cycle {run.cycle:,}{end}\n")

    @override
    def onecmd(self, line: str) -> bool:
        try:
            return super().onecmd(line)
        except FabricError as error:
            print_text(f"{error.message}\n")
            return False
        finally:
            self._place()

    @override
    def emptyline(self) -> bool:
        return False

    @override
    def default(self, line: str) -> None:
        print_text(f"{line.split(maxsplit=1)[0]!r}: expected one of {', '.join(_COMMANDS)}\n")

    @override
    def completenames(self, text: str, *_: object) -> list[str]:
        return [name for name in _COMMANDS if name.startswith(text)]

    @override
    def do_help(self, arg: str) -> None:
        """Print what there is."""
        print_text(_HELP)

    def do_where(self, _: str) -> None:
        """Print what every unit does."""
        self._print(lambda console: print_where(self._run, console))

    def do_unit(self, name: str) -> None:
        """Print one unit."""
        if not name:
            print_text(f"unit: expected its name, such as unit {self._run.state.units[0].name}\n")
            return
        self._print(lambda console: print_unit(self._run, console, name))

    def do_channel(self, name: str) -> None:
        """Print one channel, or all."""
        if not name:
            self._print(lambda console: print_channels(self._run, console))
            return
        self._print(lambda console: print_channel(self._run, console, name))

    def do_tile(self, given: str) -> None:
        """Print a value that a channel holds."""
        if not given:
            print_text("tile: expected the channel that holds it, such as tile matmul_1.0\n")
            return
        name, _, number = given.rpartition(" ")
        if not name or not number.isdecimal():
            name, number = given, ""
        self._print(
            lambda console: print_tile(
                self._run, console, name.strip(), int(number) if number else None
            )
        )

    def do_step(self, count: str) -> None:
        """Go on to where something moves."""
        if count and not (count.isdecimal() and 0 < len(count) < 18 and int(count)):
            print_text(f"step {count}: expected a number of steps, such as step 10\n")
            return
        self._run.step(int(count or 1))
        self._say_where()

    def do_go(self, where: str) -> bool:
        """Go on; True where that is to the end."""
        if not where:
            if self._asks:
                # Held once more in its last cycle, so that Ctrl-C holds it before.
                self._run.until(cycle=_NEVER)
            return True
        self._say_where(Break.parse(where).go(self._run))
        return False

    def do_quit(self, _: str) -> bool:
        """Leave the run."""
        self.left = True
        return True

    def do_EOF(self, _: str) -> bool:  # noqa: N802 - what cmd says at the end of input
        """Go on to the end: nobody asks any more."""
        if self._asks:
            print_text("\n")
        return True

    def _print(self, show: Callable[[Console], object]) -> None:
        text = printed(show)
        print_text("".join(f"{line.rstrip()}\n" for line in text.splitlines()))


_NEVER: Final = 1 << 62

_COMMANDS: Final = ("where", "unit", "channel", "tile", "step", "go", "quit", "help")
