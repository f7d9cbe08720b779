"""Figure 20: off-chip traffic of the runs of figure 10, plotted against their on-chip bytes.

Run: python -m fabric study programs/studies/figure_20.py -o figure_20
"""

from __future__ import annotations

from paper.tile_sizes import traffic_study
from paper.tradeoff import Annotation
from paper.workloads import MIXTRAL_1024, QWEN_1024

from fabric import Study

ANNOTATIONS = (
    Annotation(MIXTRAL_1024, 256, "traffic"),
    Annotation(QWEN_1024, 64, "traffic"),
    Annotation(QWEN_1024, 1024, "bytes"),
)
"""The factors 1.37, 2.21 and 12.5 that the paper prints in the figure."""


def study() -> Study:
    return traffic_study(20, 1024, ANNOTATIONS)
