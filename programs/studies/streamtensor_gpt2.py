"""GPT-2 (medium) on a simulated fabric and on StreamTensor's board (arXiv 2509.13694v2, section 6).

Time to first token is the time for reading the whole prompt. The speed is that of a decode step
with a cache of the mean length, which is the prompt and half of the output. Latency is the time to
first token plus the output divided by the speed, as in StreamTensor. Each time is the sum of 24
layers, embedding, last norm and head, which run one after the other.

For that board, a simulated fabric can show the bytes that have to move, the share of the memory's
peak that a dataflow graph of such units reaches, and the result at the board's clock. It cannot
show the speed of the board's kernels, whose tiles, unrolling, channels and traffic are not
published. Two assumptions change the result by a factor of ten, so both are run. In ``narrow``, a
unit moves 64 bytes per cycle and its loads send one request per cycle, as in the STeP paper. In
``wide``, these are 1,024 bytes and 16 requests. The fabric and the board also differ in these
points:

* Weights have four bits and all other numbers eight, as in StreamTensor, but are floating-point,
  since GPT-2's functions are not defined for integers. Tables of tokens and positions have eight
  bits, too.
* There is one unit for each operator (see ``allocated_flops_per_cycle``). The board has 98,000
  operations per cycle in all.
* A layer loads nothing before the previous layer has ended.
* A prompt is read at once, for its keys, its values and the logits of its last token. StreamTensor
  does not say how it reads prompts. Its time to first token is about the time of a decode step for
  each token of the prompt.
* Tiles of weights have 256 columns. Tiles of 64 would be narrowed to 29, since 50,257 tokens is 29
  times 1,733, and narrow tiles stall the head.
* Joules are an upper bound: the board's 150 W for the duration of the run.

It needs the extra torch.

Run: python -m fabric study programs/studies/streamtensor_gpt2.py -o streamtensor_gpt2
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Final

from paper.tables import PROGRAMS, rows
from paper.workloads import listed
from whole.parts import Setting, parts_of, total

from fabric import Claim, Findings, Judgement, Study, Verdict

MODEL: Final = "gpt2"
SIZES: Final = (32, 64, 128, 256)
"""Tokens of the prompt, equal to the number of generated ones."""

FABRICS: Final[dict[str, Setting]] = {
    "narrow": {"hardware.on_chip.bytes_per_cycle": 64, "hardware.hbm.requests_per_bundle": 1},
    "wide": {"hardware.on_chip.bytes_per_cycle": 1024, "hardware.hbm.requests_per_bundle": 16},
}

WATTS: Final = 150
"""The power of the board: ``programs/hardware/u55c_like.toml``."""


@dataclass(frozen=True)
class Times:
    """The times for a prompt and equally many generated tokens.

    Attributes:
        first_ms: the time to the first token.
        speed: generated tokens per second after the first token.
        tokens_per_joule: generated tokens per joule after the first token.
    """

    first_ms: float
    speed: float
    latency_ms: float
    tokens_per_joule: float


def study() -> Study:
    return Study(
        program=PROGRAMS / "torch_model.py",
        hardware=PROGRAMS / "hardware/u55c_like.toml",
        question="How fast is GPT-2 on a fabric with the clock and the memory of a U55C?",
        fixed={
            "model": MODEL,
            "size": "full",
            "batch": 1,
            "dtype": "float8_e4m3fn",
            "weight_dtype": "int4",
            "tile_cols": 256,
        },
        space=listed(
            fabric | step | part
            for fabric in FABRICS.values()
            for size in SIZES
            for step in (_prefill(size), _decode(size))
            for part, _ in parts_of(MODEL)
        ),
        claims=tuple(
            Claim(
                f"{what} of {size} tokens in and {size} out",
                "section 6, table of GPT-2",
                f"{published} {unit}",
                partial(_judged, size, attribute, unit),
            )
            for size in SIZES
            for what, attribute, unit, published in _published(size)
        ),
    )


def times(findings: Findings, fabric: str, size: int) -> Times | None:
    """Return the times for ``size`` tokens in and out on a fabric; None if a run failed."""
    seconds = partial(total, findings, "seconds", MODEL)
    first = seconds(FABRICS[fabric] | _prefill(size))
    token = seconds(FABRICS[fabric] | _decode(size))
    if first is None or token is None:
        return None
    return Times(1e3 * first, 1 / token, 1e3 * (first + size * token), 1 / (token * WATTS))


def _prefill(size: int) -> Setting:
    return {"phase": "prefill", "context": size}


def _decode(size: int) -> Setting:
    return {"phase": "decode", "context": size + size // 2}


def _published(size: int) -> list[tuple[str, str, str, str]]:
    """Return StreamTensor's published numbers: name, our attribute, unit, number."""
    (row,) = (
        each
        for each in rows("streamtensor_gpt2.csv")
        if each["system"] == "streamtensor_u55c_w4a8" and each["input_tokens"] == str(size)
    )
    return [
        ("Time to first token", "first_ms", "ms", row["ttft_ms"]),
        ("Tokens a second", "speed", "tokens/s", row["tokens_per_second"]),
        ("Latency", "latency_ms", "ms", row["latency_ms"]),
    ]


def _judged(size: int, attribute: str, unit: str, findings: Findings) -> Judgement:
    """Judge a number of StreamTensor beside ours, narrow and wide."""
    ended = [run for fabric in FABRICS if (run := times(findings, fabric, size)) is not None]
    if len(ended) < len(FABRICS):
        return Judgement("", Verdict.UNPUBLISHED, "A run did not complete.")
    numbers = " to ".join(f"{getattr(each, attribute):.4g}" for each in ended)
    energy = " and ".join(f"{each.tokens_per_joule:.3g}" for each in ended)
    return Judgement(
        f"{numbers} {unit}",
        Verdict.UNPUBLISHED,
        "Values of narrow and of wide units, with four-bit weights. The board's tiles, unrolling "
        f"and channels are not public. {energy} tokens per joule at {WATTS} W.",
    )
