from .call import Call as Call
from .from_torch import Schedule as Schedule
from .from_torch import from_torch as from_torch
from .importing import Importing as Importing
from .listing import unsupported_calls as unsupported_calls
from .registry import Unsupported as Unsupported
from .registry import imports as imports
