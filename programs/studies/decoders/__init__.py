"""What the studies of whole decoders share: the models, how they are matched, claims, pictures."""

from __future__ import annotations
