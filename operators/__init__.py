"""STeP's operators, one module each, and the hardware functions they apply.

What several of them share is in ``streams`` and ``tiles``.
"""

from __future__ import annotations

from fabric import Broadcast as Broadcast
from fabric import Initial as Initial
from operators.accum import Accum as Accum
from operators.addresses import CacheReadAddresses as CacheReadAddresses
from operators.addresses import ExpertAddresses as ExpertAddresses
from operators.addresses import FilterLastTile as FilterLastTile
from operators.bufferize import Bufferize as Bufferize
from operators.consumer import Consumer as Consumer
from operators.eager_merge import EagerMerge as EagerMerge
from operators.expand import Expand as Expand
from operators.expand import Repeat as Repeat
from operators.flat_map import FlatMap as FlatMap
from operators.flatten import Flatten as Flatten
from operators.functions import Add as Add
from operators.functions import CacheWriteAddress as CacheWriteAddress
from operators.functions import Div as Div
from operators.functions import Exp as Exp
from operators.functions import Function as Function
from operators.functions import Matmul as Matmul
from operators.functions import MatmulSum as MatmulSum
from operators.functions import Maximum as Maximum
from operators.functions import Mul as Mul
from operators.functions import Reduction as Reduction
from operators.functions import RescaledSum as RescaledSum
from operators.functions import RetileCol as RetileCol
from operators.functions import RetileRow as RetileRow
from operators.functions import RowAppend as RowAppend
from operators.functions import RowMaximum as RowMaximum
from operators.functions import RowSum as RowSum
from operators.functions import RunningMaximum as RunningMaximum
from operators.functions import SetOffset as SetOffset
from operators.functions import ShiftedExp as ShiftedExp
from operators.functions import SignalAllRead as SignalAllRead
from operators.functions import SiLU as SiLU
from operators.functions import Split as Split
from operators.functions import SplitCols as SplitCols
from operators.functions import SplitRows as SplitRows
from operators.functions import SplitTiles as SplitTiles
from operators.functions import Sum as Sum
from operators.functions import narrow as narrow
from operators.functions import wide as wide
from operators.linear_off_chip_load import LinearOffChipLoad as LinearOffChipLoad
from operators.linear_off_chip_store import LinearOffChipStore as LinearOffChipStore
from operators.map import Map as Map
from operators.metadata import Metadata as Metadata
from operators.parallelize import Parallelize as Parallelize
from operators.partition import Partition as Partition
from operators.promote import Promote as Promote
from operators.ragged_integers import RaggedIntegers as RaggedIntegers
from operators.random_off_chip_load import RandomOffChipLoad as RandomOffChipLoad
from operators.random_off_chip_store import RandomOffChipStore as RandomOffChipStore
from operators.reassemble import Reassemble as Reassemble
from operators.reshape import Reshape as Reshape
from operators.scan import Scan as Scan
from operators.selectors import Selectors as Selectors
from operators.streamify import Streamify as Streamify
from operators.tiles.integers import INTEGER as INTEGER
from operators.tiles.integers import integer as integer
from operators.tiles.tensor import Elements as Elements
from operators.tiles.tensor import Tensor as Tensor
from operators.zip import Zip as Zip

# The modules are attributes, too: map and zip would take the place of Python's own.
__all__ = [
    name
    for name, what in vars().items()
    if getattr(what, "__module__", "").startswith(("fabric.", "operators."))
]
