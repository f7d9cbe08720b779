"""PyTorch models as programs: captured, planned as kernels, and wired as STeP operators.

Needs the extra ``torch``; nothing else imports this room.
"""

from __future__ import annotations

from operators.kernels.schedule import Schedule
from operators.torch.call import Call
from operators.torch.from_torch import from_torch
from operators.torch.importing import Importing
from operators.torch.registry import imports
from operators.torch.unsupported import Unsupported

__all__ = ["Call", "Importing", "Schedule", "Unsupported", "from_torch", "imports"]
