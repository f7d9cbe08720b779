from __future__ import annotations

import os
import signal
import time

import numpy as np

from fabric import ConfigurationError, Program
from operators import LinearOffChipLoad, LinearOffChipStore, Map, SiLU, Tensor


def build(tiles: int = 1, rows: int = 16, fault: str = "none") -> Program:
    if rows % 2:
        raise ConfigurationError(f"rows is {rows}: expected an even number")
    match fault:
        case "raise":
            raise ZeroDivisionError("on purpose")
        case "exit":
            raise SystemExit(3)
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang":
            time.sleep(3600)
        case "print":
            print("a program's own words")  # noqa: T201
    with Program("points") as program:
        loaded = LinearOffChipLoad(Tensor((tiles * rows, 16)), tile=(rows, 16), name="load")()
        mapped = Map(SiLU(), name="map")(loaded)
        LinearOffChipStore("y", name="store")(mapped)
    program.extra["rows"] = lambda: np.int64(tiles * rows)
    return program
