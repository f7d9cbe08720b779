"""The calls of a loop: its states, and its inputs step by step."""

from __future__ import annotations

from operators.kernels.recurrence import Behind, Entrance, Recurrence, States
from operators.kernels.tensors import Stored, View
from operators.torch.call import Call
from operators.torch.importing import Importing
from operators.torch.loops.cells import BEHIND, EACH, STATES
from operators.torch.registry import imports


@imports(STATES)
def states(importing: Importing, call: Call) -> View:
    first, steps, number, state = call.args
    loop = importing.model.loops.setdefault(number, Recurrence(steps, call.file, call.line))
    kernel = States(importing.name_of(call), first, steps, importing.schedule.tile_rows)
    loop.states[state] = kernel
    (view,) = importing.add(kernel)
    return view.reshaped(call.result.shape)


@imports(BEHIND)
def behind(importing: Importing, call: Call) -> View:
    given, number, state = call.args
    loop = importing.model.loops[number]
    kernel = Behind(importing.name_of(call), loop.states[state], given)
    loop.behind[state] = kernel
    (view,) = importing.add(kernel)
    return view.reshaped(call.result.shape)


@imports(EACH)
def each(importing: Importing, call: Call) -> View:
    """Feed an input of a loop step by step. A stored tensor is loaded in this order directly."""
    x, steps = call.tensor(), call.args[1]
    if isinstance(x.source, Stored) or len(x.shape) < 2:
        return x
    kernel = Entrance(importing.name_of(call), x, steps, importing.schedule.tile_rows)
    (view,) = importing.add(kernel)
    return view
