from __future__ import annotations

from fabric import ConfigurationError, Feedback, Program, StreamType
from operators import LinearOffChipLoad, LinearOffChipStore, Map, SiLU, Tensor

ROWS = 96


def build(
    rows: int = 16, flops_per_cycle: int = 64, times: int = 1, trouble: str = "no"
) -> Program:
    if trouble == "refused":
        raise ConfigurationError("this point is refused: expected another one")
    with Program("fronts") as program:
        stream = LinearOffChipLoad(Tensor((ROWS, 16)), tile=(rows, 16))()
        for _ in range(times):
            stream = Map(SiLU(), flops_per_cycle=flops_per_cycle)(stream)
        LinearOffChipStore("y")(stream)
        if trouble == "stuck":
            loop = Feedback(StreamType((1,), stream.value))
            loop.connect(Map(SiLU())(loop))
    program.extra["waste"] = lambda: rows * times % 5
    return program
