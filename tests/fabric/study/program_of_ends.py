from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from pathlib import Path

from fabric import Program
from operators import LinearOffChipLoad, LinearOffChipStore, Tensor


def build(act: str = "", number: int = 0, once: str = "") -> Program:  # noqa: C901
    match act:
        case "exits":
            sys.exit(3)
        case "exits at once":
            os._exit(3)
        case "is killed":
            os.kill(os.getpid(), signal.SIGKILL)
        case "is asked to end":
            os.kill(os.getpid(), signal.SIGTERM)
        case "reads nowhere":
            ctypes.string_at(0)
        case "is killed once" if not Path(once).exists():
            Path(once).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        case "never ends":
            time.sleep(3600)
        case "leaves a thread":
            threading.Thread(target=time.sleep, args=(3600,)).start()
        case "says its number":
            os.write(1, f"this is {number}\n".encode())
        case "prints":
            print("said by Python")  # noqa: T201
            os.write(1, b"said by C\n")
        case "reads":
            input()
    with Program("ends") as program:
        LinearOffChipStore("y")(LinearOffChipLoad(Tensor((16, 16)), tile=(16, 16))())
    program.extra["process"] = os.getpid
    return program
