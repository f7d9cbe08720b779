"""Certificates of depths that are proved, one for each input.

``checker`` does not depend on this module: it knows only the format of a certificate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fabric.explore.sizing.checker import MOST, digest_of
from fabric.messages.errors import ConfigurationError
from fabric.messages.files import output_file
from fabric.messages.text import counted
from fabric.timing.engine import log as e
from fabric.timing.retiming.retimer import NO_LIMIT, Retimer

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.explore.sizing.result import Sizing
    from fabric.timing.engine.tables import Counters
    from fabric.timing.retiming.record import Record


def write_proofs(found: Sizing, path: Path) -> dict[Path, str]:
    """Write certificates, with ``-1``, ``-2``, ... for several; return digests by file."""
    if found.truth != "proved":
        why = "; ".join(found.reasons) or "the goal is missed"
        raise ConfigurationError(
            f"--certificate {path}: nothing is proved of these depths: {why}: expected a program "
            "of which the record of one run tells all, or --goal deadlock-free"
        )
    several = len(found.records) > 1
    written = {}
    for number, (record, run) in enumerate(zip(found.records, found.inputs, strict=True), 1):
        file = path.with_stem(f"{path.stem}-{number}") if several else path
        depths = np.array([found.depths[channel.option] for channel in record.channels], np.int64)
        limit = NO_LIMIT if run.limit_cycles is None else run.limit_cycles
        write_certificate(file, record, depths, limit)
        written[file] = record_digest(record)
    return written


def record_digest(record: Record) -> str:
    """Return the digest that certificates of a record bear, whatever the depths."""
    return digest_of(_arrays(record))


def write_certificate(path: Path, record: Record, depths: Counters, limit: int) -> None:
    """Write the times of all events of ``record`` with ``depths``, in edge order.

    The certificate proves that the record completes, and the program, if it is determinate.
    """
    if record.shares_links:
        # It would prove less than it claims: links make a run later than the rules that it checks.
        raise ConfigurationError(
            f"{path}: {record.program} has channels that share links of a network: expected none, "
            "since the checker has no rule for links"
        )
    arrays = _arrays(record)
    numbers = sum(array.size + sum(array.shape) for array in arrays.values())
    if numbers + 2 * len(record.events) > MOST:
        raise ConfigurationError(
            f"{path}: {record.program} has {counted(len(record.events), 'event')}: expected "
            f"as many as are "
            f"{MOST:,} numbers, which is all that the checker reads"
        )
    retimer = Retimer(record)
    cycles = retimer.time(depths, limit).cycles
    if cycles is None:
        raise ValueError(f"{record.program} does not complete within {counted(limit, 'cycle')}")
    arrays |= {
        "digest": np.array(digest_of(arrays)),
        "depths": np.array(depths, np.int64),
        "clocks": retimer.clocks[: len(record.events)],
        "cycles": np.array(cycles),
        "limit": np.array(limit),
    }
    with output_file(path, "wb") as file:
        np.savez_compressed(file, **arrays)


def _arrays(record: Record) -> dict[str, Any]:
    channels = [
        (
            each.producer,
            each.consumer,
            each.forward_cycles,
            each.backward_cycles,
            each.elements,
            record.interval_cycles,
        )
        for each in record.channels
    ]
    codes = record.events[:, 0]
    events = np.column_stack([codes & e.KIND, codes >> e.SHIFT, record.events[:, 1]])
    return {
        "program": np.array(record.program),
        "options": np.array([each.option for each in record.channels], np.str_),
        "first": record.first,
        "events": events,
        "channels": np.array(channels, np.int64).reshape(-1, 6),
        "clients": np.array(record.clients, np.int64),
        "shutdown_cycles": np.array(record.shutdown_cycles),
    }
