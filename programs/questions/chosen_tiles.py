"""What does attention to all of a cache cost over eight tiles that scores choose?

Run: python -m fabric study programs/questions/chosen_tiles.py -o chosen_tiles
"""

from __future__ import annotations

from beyond.savings import CAPTION, PROGRAMS, savings

from fabric import Picture, Study, grid

CONTEXTS = (256, 512, 1024, 2048, 4096)


def study() -> Study:
    """Return the study."""
    return Study(
        program=PROGRAMS / "top_k_attention.py",
        question="What does attention to all of a cache cost over eight tiles that scores choose?",
        space=grid(context=CONTEXTS, kept=[8], cache=["sparse", "dense"]),
        pictures=(
            Picture(
                "chosen_tiles",
                "All tiles of a cache over eight that a score chooses",
                savings(
                    {str(context): {"context": context} for context in CONTEXTS},
                    {"dense": {"cache": "dense"}},
                    {"cache": "sparse"},
                ),
                CAPTION,
            ),
        ),
    )
