"""Which tiles and how many regions serve every recorded batch of a layer of Qwen3-30B-A3B?

Designs are chosen on half of the batches, and the other half is held out.
``robust_design_mixtral.py`` has Mixtral's layer.

Run: python -m fabric study programs/questions/robust_design.py -o robust
"""

from __future__ import annotations

from beyond.recorded import QWEN, Layer
from beyond.savings import PROGRAMS

from fabric import Study


def study(layer: Layer = QWEN) -> Study:
    return Study(
        program=PROGRAMS / "moe.py",
        question=f"Which tiles and regions serve every recorded batch of {layer.name}'s layer?",
        fixed=layer.fixed,
        space=layer.designs,
        over=layer.batches,
        hold_out=len(layer.batches) // 2,
        minimize=("mean:cycles", "worst:on_chip_requirement_bytes"),
    )
