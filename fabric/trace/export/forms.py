"""``trace export``: the forms a trace can be written in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fabric.telling.whole_file import output_file
from fabric.trace.reading.paths import literal, plain, system_errors

if TYPE_CHECKING:
    from fabric.trace.reading.reader import Trace

__all__ = ["EXPORTS"]


def _perfetto(trace: Trace, output: Path) -> int:
    from fabric.trace.export.perfetto import write_perfetto

    return write_perfetto(trace, output)


def _vcd(trace: Trace, output: Path) -> int:
    from fabric.trace.export.vcd import write_vcd

    return write_vcd(trace, output)


def _jsonl(trace: Trace, output: Path) -> int:
    from fabric.trace.export.json_lines import write_json_lines

    return write_json_lines(trace, output)


def _csv(trace: Trace, output: Path) -> int:
    with output_file(output, "wb"), plain(output) as file, system_errors():
        trace.database.execute(
            "COPY (SELECT c.name AS channel, t.* EXCLUDE (channel) FROM transfers t "
            "JOIN channels c USING (channel) ORDER BY taken_cycle NULLS LAST, t.channel, element) "
            f"TO {literal(file)} (FORMAT csv, HEADER, COMPRESSION none, USE_TMP_FILE false)"
        )
    ((count,),) = trace.rows("SELECT count(*) FROM transfers")
    return int(count)


EXPORTS: Final[dict[str, Callable[[Trace, Path], int]]] = {
    "perfetto": _perfetto,
    "jsonl": _jsonl,
    "vcd": _vcd,
    "csv": _csv,
}
"""Writers by option; each returns how many events it wrote."""
