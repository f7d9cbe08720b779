"""Definitions of the operators: functions over nested lists, without streams or time.

A tensor of d dimensions is a list of tensors of d - 1 dimensions; of 0 dimensions, a value. An
empty list has no depth, so functions take the number of dimensions.
Source: Streaming Tensor Programs, arXiv 2511.07776v2, Tables 3 to 7.
"""

from __future__ import annotations

from tests.definitions.addresses import cache_read_addresses as cache_read_addresses
from tests.definitions.addresses import expert_addresses as expert_addresses
from tests.definitions.addresses import filter_last_tile as filter_last_tile
from tests.definitions.higher_order import accum as accum
from tests.definitions.higher_order import flat_map as flat_map
from tests.definitions.higher_order import map_values as map_values
from tests.definitions.higher_order import scan as scan
from tests.definitions.higher_order import zip_values as zip_values
from tests.definitions.memory import affine as affine
from tests.definitions.memory import cut as cut
from tests.definitions.memory import per_reference as per_reference
from tests.definitions.memory import stacked as stacked
from tests.definitions.memory import streamify as streamify
from tests.definitions.routing import merged as merged
from tests.definitions.routing import parallelize as parallelize
from tests.definitions.routing import partition as partition
from tests.definitions.routing import reassemble as reassemble
from tests.definitions.shape import expand as expand
from tests.definitions.shape import flatten as flatten
from tests.definitions.shape import initial as initial
from tests.definitions.shape import promote as promote
from tests.definitions.shape import repeat as repeat
from tests.definitions.shape import reshape as reshape
from tests.definitions.sparse import intersect as intersect
from tests.definitions.sparse import scatter as scatter
from tests.definitions.sparse import union as union
from tests.definitions.tensors import at_depth as at_depth
from tests.definitions.tensors import leaves as leaves
