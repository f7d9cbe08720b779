"""Loops: their states, their inputs step by step, and dimensions read backwards."""

from __future__ import annotations

from operators.kernels.recurrence import Behind, Entrance, Recurrence, States
from operators.kernels.tensors import Stored, View
from operators.torch.call import Call
from operators.torch.importing import Importing
from operators.torch.loops.cells import BEHIND, EACH, STATES
from operators.torch.registry import imports


@imports(STATES)
def states(importing: Importing, call: Call) -> View:
    """The state before each step."""
    first, steps, number, state = call.args
    loop = importing.model.loops.setdefault(number, Recurrence(steps, call.file, call.line))
    kernel = States(importing.name_of(call), first, steps, importing.schedule.tile_rows)
    loop.states[state] = kernel
    (view,) = importing.add(kernel)
    return view.reshaped(call.result.shape)


@imports(BEHIND)
def behind(importing: Importing, call: Call) -> View:
    """The state behind the last step."""
    given, number, state = call.args
    loop = importing.model.loops[number]
    kernel = Behind(importing.name_of(call), loop.states[state], given)
    loop.behind[state] = kernel
    (view,) = importing.add(kernel)
    return view.reshaped(call.result.shape)


@imports(EACH)
def each(importing: Importing, call: Call) -> View:
    """An input of a loop; a stored tensor stays as it is, since memory serves any order."""
    given, steps = call.tensor(), call.args[1]
    if isinstance(given.source, Stored) or len(given.shape) < 2:
        return given
    kernel = Entrance(importing.name_of(call), given, steps, importing.schedule.tile_rows)
    (view,) = importing.add(kernel)
    return view
