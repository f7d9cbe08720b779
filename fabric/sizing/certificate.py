"""Write down what proves that depths do: when everything happens with them.

``checker`` knows nothing of how the clocks were found, and has what a certificate consists of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fabric.retiming import events as e
from fabric.sizing.checker import digest_of

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.retiming.record import Record
    from fabric.retiming.retimer import Retimer

__all__ = ["record_digest", "write_certificate"]


def record_digest(record: Record) -> str:
    """Return the digest that certificates of a record bear, whatever the depths."""
    return digest_of(_arrays(record))


def write_certificate(path: Path, retimer: Retimer, limit: int) -> None:
    """Write that a record completes as it was timed last.

    It proves so of the record: of the program where the record is determinate, only.

    Args:
        path: of the file, which is overwritten.
        retimer: has timed the record, and it has completed.
        limit: cycles that it may take.

    Raises:
        ValueError: the record has not completed within ``limit``.
    """
    record = retimer.record
    cycles = retimer.retimed.cycles
    if cycles is None or cycles > limit:
        raise ValueError(f"{record.program} takes {cycles} cycles: expected at most {limit}")
    arrays = _arrays(record)
    arrays |= {
        "digest": np.array(digest_of(arrays)),
        "depths": retimer.depths,
        "clocks": retimer.clocks[: len(record.events)],
        "cycles": np.array(cycles),
        "limit": np.array(limit),
    }
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)


def _arrays(record: Record) -> dict[str, Any]:
    """Return the arrays that say what was recorded."""
    channels = [
        (each.producer, each.consumer, each.forward_cycles, each.backward_cycles, each.elements)
        for each in record.channels
    ]
    codes = record.events[:, 0]
    events = np.column_stack([codes & e.KIND, codes >> e.SHIFT, record.events[:, 1]])
    return {
        "program": np.array(record.program),
        "options": np.array([each.option for each in record.channels], np.str_),
        "first": record.first,
        "events": events,
        "channels": np.array(channels, np.int64).reshape(-1, 5),
        "clients": np.array(record.clients, np.int64),
        "shutdown_cycles": np.array(record.shutdown_cycles),
    }
