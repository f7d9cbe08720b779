"""Six whole language models of PyTorch on the paper's fabric with a clock and prices.

A model reads a prompt of 512 tokens, or makes a token for each of 16 requests with caches of 512.
Its layers, embedding, last norm and head run one after the other. Equal layers are simulated once
and multiplied by their number. Weights and activations are bfloat16. The choices of experts are
from recorded layers.

It needs the extra torch.

Run: python -m fabric study programs/studies/torch_models.py -o torch_models
"""

from __future__ import annotations

import math
from typing import Final

from matplotlib.figure import Figure
from paper.tables import PROGRAMS, routing
from paper.workloads import listed
from whole.parts import PARTS, Setting, parts_of, total

from fabric import Findings, Picture, Study

TITLES: Final = {
    "gpt2": "GPT-2 (medium)",
    "llama": "TinyLlama 1.1B",
    "qwen3": "Qwen3 0.6B",
    "gemma3": "Gemma 3 1B",
    "qwen3-moe": "Qwen3-30B-A3B",
    "mixtral": "Mixtral-8x7B",
}

STEPS: Final[dict[str, Setting]] = {
    "prefill": {"phase": "prefill", "batch": 1, "context": 512},
    "decode": {"phase": "decode", "batch": 16, "context": 512},
}

ROUTING: Final = {
    "qwen3-moe": routing("qwen_b1024/022_016.npz"),
    "mixtral": routing("mixtral_b1024/019_009.npz"),
}


def study() -> Study:
    return Study(
        program=PROGRAMS / "torch_model.py",
        hardware=PROGRAMS / "hardware/paper_priced.toml",
        question="How many tokens per second and per joule do whole models make on this fabric?",
        fixed={"size": "full", "tile_cols": 128, "attention_regions": 4},
        space=listed(
            {"model": model, "routing": ROUTING.get(model)} | step | part
            for model in PARTS
            for step in STEPS.values()
            for part, _ in parts_of(model)
        ),
        pictures=(
            Picture(
                "models",
                "Whole models: layers and ends, one after the other",
                draw,
                "Of equal layers one was run, and its cost is multiplied by their number.",
            ),
        ),
    )


def rates(findings: Findings, model: str, step: str) -> tuple[float, float] | None:
    """Return tokens per second and per joule of all requests together; None if a run failed.

    Tokens per joule are NaN if joules are unknown.
    """
    setting = {"model": model} | STEPS[step]
    batch, context = setting["batch"], setting["context"]
    assert isinstance(batch, int)
    assert isinstance(context, int)
    tokens = batch * (context if step == "prefill" else 1)
    seconds = total(findings, "seconds", model, setting)
    joules = total(findings, "joules", model, setting)
    return None if seconds is None else (tokens / seconds, tokens / (joules or math.nan))


def draw(findings: Findings, figure: Figure) -> None:
    figure.set_size_inches(8, 6.4)
    for axes, step in zip(figure.subplots(len(STEPS)), STEPS, strict=True):
        found = {model: rates(findings, model, step) for model in PARTS}
        ended = {model: each for model, each in found.items() if each is not None}
        bars = axes.barh([TITLES[each] for each in ended], [speed for speed, _ in ended.values()])
        axes.bar_label(bars, [_label(*each) for each in ended.values()])
        axes.set_xscale("log")
        axes.margins(x=1.2)
        axes.invert_yaxis()
        axes.set_title(step)
    axes.set_xlabel("tokens a second, all requests together")


def _label(speed: float, for_a_joule: float) -> str:
    priced = "no price" if math.isnan(for_a_joule) else f"{for_a_joule:,.1f} tokens/J"
    return f" {speed:,.0f} tokens/s, {priced}"
