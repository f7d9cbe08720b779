"""A group of commands that lists complete summaries."""

from __future__ import annotations

import click
from typing_extensions import override


class Group(click.Group):
    @override
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        longest = 10_000  # characters of a sentence; by default, click truncates it to the line
        rows = [(name, each.get_short_help_str(longest)) for name, each in commands if each]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
