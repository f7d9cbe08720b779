"""Why a program does not move: who waits for whom, why, and which depths would let it go on."""

from __future__ import annotations
