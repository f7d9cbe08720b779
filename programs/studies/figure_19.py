"""Figure 19: off-chip traffic of the runs of figure 9, plotted against their on-chip bytes.

Run: python -m fabric study programs/studies/figure_19.py -o figure_19
"""

from __future__ import annotations

from paper.tile_sizes import traffic_study
from paper.tradeoff import Annotation
from paper.workloads import MIXTRAL_64, QWEN_64

from fabric import Study

ANNOTATIONS = (
    Annotation(MIXTRAL_64, 32, "bytes"),
    Annotation(QWEN_64, 8, "bytes"),
    Annotation(QWEN_64, 8, "traffic"),
    Annotation(QWEN_64, 64, "bytes"),
)
"""The factors 1.33, 2.1, 1.58 and 5.05 that the paper prints in the figure."""


def study() -> Study:
    return traffic_study(19, 64, ANNOTATIONS)
