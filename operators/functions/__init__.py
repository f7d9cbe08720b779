"""Hardware functions: what Map, Accum, Scan and FlatMap apply, with their cost."""

from __future__ import annotations

from operators.functions.base import Function as Function
from operators.functions.base import narrow as narrow
from operators.functions.base import wide as wide
from operators.functions.elementwise import Add as Add
from operators.functions.elementwise import Div as Div
from operators.functions.elementwise import Exp as Exp
from operators.functions.elementwise import Maximum as Maximum
from operators.functions.elementwise import Mul as Mul
from operators.functions.elementwise import SiLU as SiLU
from operators.functions.matmul import Matmul as Matmul
from operators.functions.matmul import MatmulSum as MatmulSum
from operators.functions.reduction import Reduction as Reduction
from operators.functions.retile import RetileCol as RetileCol
from operators.functions.retile import RetileRow as RetileRow
from operators.functions.rows import CacheWriteAddress as CacheWriteAddress
from operators.functions.rows import RowAppend as RowAppend
from operators.functions.rows import RowMaximum as RowMaximum
from operators.functions.rows import RowSum as RowSum
from operators.functions.rows import SetOffset as SetOffset
from operators.functions.softmax import RescaledSum as RescaledSum
from operators.functions.softmax import RunningMaximum as RunningMaximum
from operators.functions.softmax import ShiftedExp as ShiftedExp
from operators.functions.split import Split as Split
from operators.functions.split import SplitCols as SplitCols
from operators.functions.split import SplitRows as SplitRows
from operators.functions.split import SplitTiles as SplitTiles
from operators.functions.sums import SignalAllRead as SignalAllRead
from operators.functions.sums import Sum as Sum
