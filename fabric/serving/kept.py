"""Runs that are whole, kept in a folder: the same command goes on where it was."""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Final

import msgspec

from fabric.serving.requests import Requests
from fabric.serving.result import Run
from fabric.serving.serving import Serving
from fabric.study.identity import engine_digest
from fabric.telling.given_file import open_given
from fabric.telling.plain import plain
from fabric.telling.whole_file import write_whole

__all__ = ["KeptRuns", "run_identity"]


class _Line(msgspec.Struct, frozen=True):
    identity: str
    run: Run


class KeptRuns:
    """Runs by their identity, in a file of lines."""

    def __init__(self, file: Path | None) -> None:
        """Read what is there; nothing stays where None.

        A line that is damaged, or of another version, is as if it were not there.
        """
        self._file: Final = file
        self._known: Final[dict[str, Run]] = {}
        if file is None or not file.exists():
            return
        with open_given(file) as opened:
            for line in opened.read().splitlines():
                with contextlib.suppress(msgspec.DecodeError, msgspec.ValidationError):
                    kept = msgspec.json.decode(line, type=_Line)
                    self._known[kept.identity] = kept.run

    def get(self, identity: str) -> Run | None:
        """Return a run that is known."""
        return self._known.get(identity)

    def keep(self, identity: str, run: Run) -> None:
        """Keep a run.

        Raises:
            OSError: it cannot be written.
        """
        self._known[identity] = run
        if self._file is None:
            return
        lines = [
            json.dumps({"identity": each, "run": plain(asdict(one))})
            for each, one in self._known.items()
        ]
        write_whole(self._file, "\n".join(lines) + "\n")


def run_identity(serving: Serving, cost: str, requests: Requests, scheduler: str) -> str:
    """Return what a run depends on, as one digest.

    Args:
        serving: its server and service level count.
        cost: the identity of what steps cost.
        requests: that come.
        scheduler: the digest of a user's own; empty for the fabric's.
    """
    told = [
        engine_digest(),
        cost,
        scheduler,
        *(plain(vars(each)) for each in (serving.server, serving.level)),
    ]
    digest = hashlib.sha256(json.dumps(told).encode())
    for column in (requests.arrival_seconds, requests.prompt_tokens, requests.output_tokens):
        digest.update(column.tobytes())
    return digest.hexdigest()
