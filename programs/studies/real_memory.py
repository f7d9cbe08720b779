"""Figures 9, 10 and 12 to 15 on a memory with banks and on a flat memory of the same peak.

The paper's memory gives 1,024 bytes per cycle for any requests. Here every design runs on that
memory and on HBM2 (2000 Mbps, 32 channels: at most 1,024 bytes per cycle, addresses interleaved
with hash, refresh on). The claims of the figures that involve cycles are computed on both memories.
All points of batch 64 and of figures 12 to 14 run. Of batch 1024, the static tiles in the text and
the fastest static tiles run (Mixtral from 128 rows on, Qwen 64 to 256). Of figure 15, the batches
of 16 and 64 run. Channels are as deep as in the figures.

Variations of Qwen's layer of batch 64 show the causes: weights in other tiles, tensors at other
addresses, and memories of the same peak with another mapping, scheduler or window, or with fewer
and wider channels. The weights of Mixtral start at multiples of 16 MiB, so its layer runs with
other addresses, too.

Run: python -m fabric study programs/studies/real_memory.py -o real_memory
"""

from __future__ import annotations

from paper.comparisons import by_workload, rows
from paper.memories import BANKED, FLAT, space
from paper.memory_pictures import draw_ratios, draw_regions
from paper.memory_tables import BESIDE, beside, by_regions, by_variation
from paper.tables import PROGRAMS

from fabric import Picture, Study, StudyTable


def study() -> Study:
    return Study(
        program=PROGRAMS / "moe_or_attention.py",
        question="Which ratios of the paper hold on a memory that has banks, and what moves them?",
        space=space(),
        tables=(
            StudyTable(
                "What the paper compares, on both memories",
                ("figure", "what", "published", "flat", "banked", "result"),
                lambda findings: rows(findings, (FLAT, BANKED)),
                "A ratio holds if it differs by less than 2 %. Ratios of on-chip memory are as in "
                "figures 9 and 10. There, dynamic tiles have 6400 FLOPs per cycle, static ones "
                "4096.",
            ),
            StudyTable(
                "The workloads, in cycles",
                ("workload", "design", *BESIDE),
                lambda findings: by_workload(findings, beside),
                "The static tile is the fastest one on the flat memory. Units have 4096 FLOPs per "
                "cycle, in shared regions 1024, in attention 2048. Causes of lost bus cycles are "
                "listed from 5 % on.",
            ),
            StudyTable(
                "By requests in flight: Qwen's layer in fewer and fewer regions",
                ("tiling", "regions", *BESIDE),
                by_regions,
            ),
            StudyTable(
                "By properties of the memory, and by its requests",
                ("layer", "changed", "tiling", *BESIDE),
                by_variation,
            ),
        ),
        pictures=(
            Picture(
                "ratios",
                "What the paper compares, on both memories",
                draw_ratios,
                "Ratios of cycles; above 1 the paper's proposal is faster. Circles: published.",
            ),
            Picture(
                "regions",
                "Qwen's layer with fewer and fewer regions, on both memories",
                draw_regions,
                "If the memory limits the run, banks cost cycles. If few regions compute all the "
                "time, banks cost none.",
            ),
        ),
    )
