"""Certificates of depths that are proved, one for each input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fabric.retiming.retimer import NO_LIMIT
from fabric.sizing.certificate import record_digest, write_certificate
from fabric.telling.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.sizing.result import Sizing

__all__ = ["write_proofs"]


def write_proofs(found: Sizing, path: Path) -> dict[Path, str]:
    """Write the certificate of each input, of several behind ``-1``, ``-2`` and so on.

    Returns:
        By file, the digest of the record that it is about.

    Raises:
        ConfigurationError: nothing is proved, or it has more events than the checker reads.
        OSError: a file cannot be written.
    """
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
