"""From a plan to a machine that runs: assembly, operators as trio tasks, what users break."""

from __future__ import annotations
