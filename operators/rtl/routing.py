"""Modules of operators that route elements to outputs, or join two streams."""

from __future__ import annotations

# Any: amaranth has no types.
from typing import Any

from amaranth import Array, Cat, Const, Mux, Signal

from operators.rtl.blocks import (
    Emitter,
    Unit,
    any_of,
    changed,
    older,
    overflows,
    token,
    widths,
    wire,
)
from operators.rtl.costs import Port, are_done, known_later, registered


def partition(consumers: int) -> Unit:
    """Send each sub-tensor of input 0 to the consumers that the selector in input 1 names.

    An element takes the cycles of its loading and, if the selector names a consumer, ``switch``
    more. If it then finds no credit, it waits behind the switch, and no other element is taken
    until it has left.
    """
    u = Unit(2, consumers)
    m, (data, steering), emitter = u.m, u.inputs, Emitter(u.m, u.outputs)
    rank, switch = u.parameter("rank"), u.parameter("switch")
    element_bytes, bandwidth = u.parameter("bytes_0"), u.parameter("bandwidth")

    # An element on its way through the switch.
    is_moving = Signal()
    left_cycles = Signal(len(switch))
    moving = token("moving")
    moving_to = Signal(consumers)
    is_due = wire(m, "is_due", is_moving & (left_cycles == 0))
    left = emitter.push(is_due & emitter.free, moving, moving_to)
    going = wire(m, "going", emitter.free & left & (~is_moving | is_due))

    has_selector = Signal()
    kept_selector = token("kept_selector")
    selector = token("selector")
    m.d.comb += selector.eq(Mux(has_selector, kept_selector.as_value(), steering.token.as_value()))
    begins = wire(m, "begins", going & ~has_selector & steering.valid)
    hits = Signal(consumers)
    m.d.comb += hits.eq(Mux(selector.bare, 0, selector.control))
    looks = wire(m, "looks", going & (has_selector | steering.valid) & data.valid)

    shown = data.token
    tile_bytes = shown.rows * shown.cols * element_bytes
    load = Port("load", bandwidth, [(shown.in_memory & ~shown.bare, tile_bytes)])
    m.d.comb += data.take.eq(looks & are_done(m, looks, data.take, [load]))
    routed = changed(
        m, shown, "routed", level=Mux(shown.level < rank, shown.level, rank), in_memory=0
    )
    passes_switch = wire(m, "passes_switch", data.take & ~shown.bare & (hits != 0) & (switch != 0))
    m.d.sync += left_cycles.eq(Mux(left_cycles == 0, 0, left_cycles - 1))
    with m.If(passes_switch):
        m.d.sync += [is_moving.eq(1), left_cycles.eq(switch - 1)]
        m.d.sync += [moving.eq(routed), moving_to.eq(hits)]
    with m.Elif(is_due & emitter.free):
        m.d.sync += is_moving.eq(0)
    left_at_once = emitter.push(data.take & ~passes_switch, routed, hits)
    emitter.close()

    # The next selector is taken in the same cycle if the switch is empty.
    ends = wire(m, "ends", data.take & (selector.bare | (shown.level >= rank)))
    follows = ends & ~passes_switch & left_at_once & has_selector & steering.valid
    m.d.comb += steering.take.eq(begins | follows)
    with m.If(steering.take):
        m.d.sync += kept_selector.eq(steering.token)
    stays_open = wire(m, "stays_open", follows | ((has_selector | begins) & ~ends))
    m.d.sync += has_selector.eq(stays_open)
    m.d.comb += u.fault.eq(data.take & selector.bare & ~shown.bare)
    is_through = going & ~passes_switch & emitter.empty
    m.d.comb += u.done.eq(is_through & ~stays_open & steering.over & data.over)
    return u


def parallelize(consumers: int) -> Unit:
    """Send sub-tensors to the consumers in turn."""
    u = Unit(1, consumers)
    m, head, emitter = u.m, u.inputs[0], Emitter(u.m, u.outputs)
    rank = u.parameter("rank")
    turn = Signal(consumers, init=1)
    m.d.comb += head.take.eq(head.valid & emitter.free)
    emitter.push(head.take, head.token, turn)
    emitter.close()
    with m.If(head.take & (head.token.level >= rank)):
        m.d.sync += turn.eq(Cat(turn[-1], turn[:-1]))
    m.d.comb += u.done.eq(emitter.empty & head.over)
    return u


def _ages(m: Any, unit: Unit, inputs: int) -> list[Any]:
    """Return, for each input, the cycles since its element became visible."""
    ages = []
    for number, each in enumerate(unit.inputs[:inputs]):
        age = Signal(widths().cycles, name=f"age_{number}")
        with m.If(each.take | ~each.valid):
            m.d.sync += age.eq(0)
        with m.Else():
            m.d.sync += age.eq(age + 1)
        ages.append(age)
    return ages


def reassemble(producers: int) -> Unit:  # noqa: PLR0915 - one unit
    """Put together the sub-tensors that a selector names, in their order of arrival.

    The last input has the selectors. Loading begins ``switch`` cycles after the first element of
    the sub-tensor arrived, and an element leaves after it is loaded.
    """
    u = Unit(producers + 1, 1)
    m, emitter = u.m, Emitter(u.m, u.outputs)
    streams, steering = u.inputs[:-1], u.inputs[-1]
    rank, switch = u.parameter("rank"), u.parameter("switch")
    element_bytes, bandwidth = u.parameter("bytes_0"), u.parameter("bandwidth")
    ages = _ages(m, u, producers)
    # By input: the bytes that could be loaded since its element was visible for ``switch`` cycles.
    bits = widths().cycles + len(bandwidth)
    moved = [Signal(bits, name=f"moved_{at}") for at in range(producers)]
    for at, (age, each) in enumerate(zip(ages, streams, strict=True)):
        is_new = each.take | ~each.valid
        m.d.sync += moved[at].eq(Mux(is_new | (age < switch), 0, moved[at] + bandwidth))
    if widths().registers:
        return _reassemble_registered(u, emitter, ages, moved)
    valid = wire(m, "valid", Cat(each.valid for each in streams))

    # The remaining sub-tensors of a selector, whether all have arrived, and the current one.
    left = Signal(producers)
    closing = Signal(widths().level)
    has_come = Signal()
    is_open = Signal()
    source = Signal(range(max(2, producers)))
    waited = Signal(widths().cycles)
    moved_open = Signal(bits)

    def step(number: int, enable: Any, before: tuple[Any, ...]) -> tuple[Any, ...]:
        """Take at most one element. Return the pushed element, and the state after it."""
        left, closing, has_come, is_open, source, waited, moved_open, used = before
        may_begin = (left == 0) & ~is_open & ~used[producers]
        begins = wire(m, f"begins_{number}", enable & may_begin & steering.valid)
        selector = steering.token
        named = Signal(producers, name=f"named_{number}")
        m.d.comb += named.eq(Mux(begins, Mux(selector.bare, 0, selector.control), left))
        last_level = Signal(widths().level, name=f"closing_{number}")
        m.d.comb += last_level.eq(Mux(begins, selector.level + 1, closing))
        is_empty = begins & (named == 0)
        shown = wire(m, f"shown_{number}", valid & ~used[:producers])
        came = wire(m, f"came_{number}", (has_come & ~begins) | ((named & ~shown) == 0))
        chosen = older(m, ages, named)
        now_from = Signal(range(max(2, producers)), name=f"from_{number}")
        m.d.comb += now_from.eq(Mux(is_open, source, chosen))
        since = Signal(widths().cycles, name=f"since_{number}")
        moved_now = Signal(len(moved_open), name=f"moved_now_{number}")
        head = token(f"head_{number}")
        is_shown = Signal(name=f"is_shown_{number}")
        with m.Switch(now_from):
            for port, each in enumerate(streams):
                with m.Case(port):
                    m.d.comb += [head.eq(each.token), is_shown.eq(shown[port])]
                    m.d.comb += since.eq(Mux(is_open, waited, ages[port]))
                    m.d.comb += moved_now.eq(Mux(is_open, moved_open, moved[port]))
        is_passing = is_open | ((named != 0) & came)
        is_switched = since >= switch
        is_loaded = ~head.in_memory | (moved_now >= head.rows * head.cols * element_bytes)
        is_in_time = head.bare | (is_switched & is_loaded)
        takes = wire(m, f"takes_{number}", enable & is_passing & is_shown & is_in_time)
        ends = takes & (head.level >= rank)
        after = Signal(producers, name=f"after_{number}")
        m.d.comb += after.eq(named & ~(Mux(is_open, 0, takes) << now_from))
        result = changed(
            m,
            head,
            f"passed_{number}",
            level=Mux(ends & (after == 0), head.level + last_level, head.level),
            in_memory=0,
        )
        with m.If(is_empty):
            m.d.comb += result.eq(0)
            m.d.comb += [
                result.bare.eq(1),
                result.empty.eq(rank),
                result.level.eq(rank + last_level),
            ]
            with m.If(selector.bare):
                m.d.comb += result.empty.eq(selector.empty + rank + 1)
        taken = Signal(producers + 1, name=f"taken_{number}")
        m.d.comb += taken.eq((takes << now_from) | (begins << producers))
        now = (
            after,
            last_level,
            came & (after != 0),
            Mux(takes, ~ends, is_open),
            now_from,
            since + 1,
            Mux(is_switched, moved_now + bandwidth, 0),
            used | taken,
        )
        return result, takes | is_empty, now

    state = (left, closing, has_come, is_open, source, waited, moved_open)
    first, pushes, after = step(0, emitter.free, (*state, Const(0, producers + 1)))
    gone = emitter.push(pushes, first)
    second, pushes_second, after = step(1, pushes & gone, after)
    emitter.push(pushes_second, second)
    emitter.close()
    m.d.sync += [signal.eq(value) for signal, value in zip(state, after, strict=False)]
    used = Signal(producers + 1)
    m.d.comb += used.eq(after[-1])
    m.d.comb += [each.take.eq(used[port]) for port, each in enumerate(u.inputs)]
    is_through = emitter.empty & (after[0] == 0) & ~after[3]
    m.d.comb += u.fault.eq((is_open & waited.all()) | any_of(age.all() for age in ages))
    m.d.comb += u.done.eq(is_through & steering.over)
    return u


def _reassemble_registered(u: Unit, emitter: Emitter, ages: list[Any], moved: list[Any]) -> Unit:
    """Choose a sub-tensor in one cycle and pass it on from the next cycle.

    The previous sub-tensor may end in the cycle of the choice.
    """
    m, streams, steering = u.m, u.inputs[:-1], u.inputs[-1]
    producers, selector = len(streams), steering.token
    rank, switch, bandwidth = (u.parameters[each] for each in ("rank", "switch", "bandwidth"))
    valid = Cat(each.valid for each in streams)

    # The current sub-tensor, the age and bytes of its first element, and the remaining sub-tensors.
    is_open = Signal()
    source = Signal(range(max(2, producers)))
    waited = Signal(widths().cycles)
    moved_open = Signal(len(moved[0]))
    left = Signal(producers)
    closing = Signal(widths().level)

    head = token("head")
    is_shown = Signal()
    with m.Switch(source):
        for port, each in enumerate(streams):
            with m.Case(port):
                m.d.comb += [head.eq(each.token), is_shown.eq(each.valid)]
    looks = wire(m, "looks", emitter.free & is_open & is_shown)
    takes = Signal()
    tile_bytes = head.rows * head.cols * u.parameters["bytes_0"]
    is_known = known_later(m, looks, takes)
    is_loaded = is_known & (moved_open >= registered(m, "tile_bytes", tile_bytes))
    is_in_time = (waited >= switch) & (~head.in_memory | is_loaded)
    m.d.comb += takes.eq(looks & (head.bare | is_in_time))
    ends = wire(m, "ends", takes & (head.level >= rank))

    begins = wire(m, "begins", emitter.free & ~is_open & (left == 0) & steering.valid)
    named = Signal(producers)
    m.d.comb += named.eq(Mux(begins, Mux(selector.bare, 0, selector.control), left))
    chosen = older(m, ages, named)
    is_next = ends | (~is_open & ((named & ~valid) == 0))
    chooses = wire(m, "chooses", is_next & (named != 0))
    age, moved_before = Signal(len(waited)), Signal(len(moved_open))
    m.d.comb += [age.eq(waited), moved_before.eq(moved_open)]
    with m.If(chooses):
        m.d.comb += [age.eq(Array(ages)[chosen]), moved_before.eq(Array(moved)[chosen])]
        m.d.sync += source.eq(chosen)
    m.d.sync += [
        is_open.eq(chooses | (is_open & ~ends)),
        left.eq(named & ~(chooses << chosen)),
        waited.eq(age + 1),
        moved_open.eq(Mux(age >= switch, moved_before + bandwidth, 0)),
    ]
    with m.If(begins):
        m.d.sync += closing.eq(selector.level + 1)

    level = Mux(ends & (left == 0), head.level + closing, head.level)
    sent = changed(m, head, "sent", level=level, in_memory=0)
    is_empty = begins & (named == 0)
    with m.If(is_empty):
        m.d.comb += [sent.eq(0), sent.bare.eq(1), sent.level.eq(rank + selector.level + 1)]
        m.d.comb += sent.empty.eq(Mux(selector.bare, selector.empty + rank + 1, rank))
    emitter.push(takes | is_empty, sent)
    emitter.close()
    m.d.comb += [each.take.eq(takes & (source == port)) for port, each in enumerate(streams)]
    m.d.comb += steering.take.eq(begins)
    m.d.comb += u.fault.eq((is_open & waited.all()) | any_of(age.all() for age in ages))
    m.d.comb += u.done.eq(emitter.empty & ~is_open & (left == 0) & steering.over)
    return u


def eager_merge(producers: int, reads: str) -> Unit:
    """Pass on sub-tensors in order of arrival. For each, send a selector that names its input.

    ``reads`` lists the outputs that exist: ``d`` for the data, ``s`` for the selectors.
    """
    outputs = len(reads)
    u = Unit(producers, outputs)
    m, emitter = u.m, Emitter(u.m, u.outputs)
    rank = u.parameter("rank")
    ages = _ages(m, u, producers)
    valid = wire(m, "valid", Cat(each.valid for each in u.inputs))
    is_open = Signal()
    source = Signal(range(max(2, producers)))
    to_data, to_selectors = (1 << reads.index(each) if each in reads else 0 for each in "ds")

    def step(number: int, enable: Any, before: tuple[Any, Any, Any]) -> tuple[Any, Any, Any, Any]:
        """Take at most one element. Return whether it has left, and the state after it."""
        is_open, source, used = before
        shown = wire(m, f"shown_{number}", valid & ~used)
        begins = enable & ~is_open & (shown != 0)
        winner = older(m, ages, shown)
        named = token(f"named_{number}")
        m.d.comb += named.control.eq(1 << winner)
        told = emitter.push(begins, named, Const(to_selectors, outputs))
        now_from = Signal(range(max(2, producers)), name=f"from_{number}")
        m.d.comb += now_from.eq(Mux(is_open, source, winner))
        head, is_shown = token(f"head_{number}"), Signal(name=f"is_shown_{number}")
        with m.Switch(now_from):
            for port, each in enumerate(u.inputs):
                with m.Case(port):
                    m.d.comb += [head.eq(each.token), is_shown.eq(shown[port])]
        takes = wire(m, f"takes_{number}", enable & told & (is_open | begins) & is_shown)
        left = emitter.push(takes, head, Const(to_data, outputs))
        stays_open = Mux(takes, head.level < rank, is_open | begins)
        return takes & left, stays_open, now_from, used | (takes << now_from)

    goes_on, *after = step(0, emitter.free, (is_open, source, Const(0, producers)))
    if not widths().registers:
        # After a sub-tensor has left, the next one may be chosen and started in the same cycle.
        _, *after = step(1, goes_on, (after[0], after[1], after[2]))
    stays_open, last_source, used = after
    emitter.close()
    taken = Signal(producers)
    m.d.comb += taken.eq(used)
    m.d.comb += [each.take.eq(taken[port]) for port, each in enumerate(u.inputs)]
    m.d.sync += [is_open.eq(stays_open), source.eq(last_source)]
    m.d.comb += u.fault.eq(any_of(age.all() for age in ages))
    m.d.comb += u.done.eq(emitter.empty & ~stays_open & u.over)
    return u


def zip_numbers() -> Unit:
    """Put the numbers of two streams into tuples."""
    u = Unit(2, 1)
    m, (a, b), emitter = u.m, u.inputs, Emitter(u.m, u.outputs)
    takes = wire(m, "takes", a.valid & b.valid & emitter.free)
    m.d.comb += [a.take.eq(takes), b.take.eq(takes)]
    bits = widths().number
    both = Cat(a.token.control[:bits], b.token.control[:bits])
    emitter.push(takes, changed(m, a.token, "pair", control=both))
    emitter.close()
    differs = (a.token.level != b.token.level) | (a.token.bare != b.token.bare)
    is_large = overflows([a.token.control, b.token.control], bits)
    m.d.comb += u.fault.eq(takes & (differs | is_large))
    m.d.comb += u.done.eq(emitter.empty & a.over & b.over)
    return u


def intersect(read: tuple[int, ...], items: tuple[int, int]) -> Unit:  # noqa: PLR0915 - one unit
    """Compare the coordinates of two sides, one pair per cycle, and send common coordinates.

    ``read`` lists the outputs that exist: coordinates, left and right payloads. A side with
    elements of 2 ``items`` has its payload beside its coordinate; otherwise the coordinate is the
    payload.
    """
    u = Unit(2, len(read))
    m, (left, right), bits = u.m, u.inputs, widths().number

    def third(number: int) -> Any:
        def shown(what: Any) -> Any:
            part = what.control[number * bits : (number + 1) * bits]
            return changed(m, what, f"shown_{number}", control=part)

        return shown

    emitter = Emitter(m, u.outputs, shown=[third(number) for number in read])
    is_inside = Signal()
    waits = Signal()
    closed = [Signal(name=f"closed_{side}") for side in range(2)]
    stops = [Signal(len(each.token.level), name=f"stop_{at}") for at, each in enumerate(u.inputs)]
    coordinates = [each.token.control[:bits] for each in u.inputs]
    payloads = [
        each.token.control[(count - 1) * bits : count * bits]
        for each, count in zip(u.inputs, items, strict=True)
    ]

    # If both sides have ended without a match, the stop is sent before the next group.
    going = Signal()
    goes_on = Signal()
    inside = Signal()
    m.d.comb += going.eq(emitter.free & ~waits)
    ends_first = wire(m, "ends_first", going & is_inside & closed[0] & closed[1])
    ended = token("ended")
    m.d.comb += [ended.bare.eq(1), ended.level.eq(stops[0])]
    every = (1 << len(read)) - 1
    m.d.comb += goes_on.eq(going & emitter.push(ends_first, ended, every))
    m.d.comb += inside.eq(is_inside & ~ends_first)

    # A group starts when both sides have an element.
    are_there = left.valid & right.valid
    outside = Signal()
    begins = Signal()
    are_empty = [each.token.bare & (each.token.empty != 0) for each in u.inputs]
    m.d.comb += outside.eq(goes_on & ~inside & are_there & are_empty[0])
    m.d.comb += begins.eq(goes_on & ~inside & are_there & ~are_empty[0])
    within = goes_on & (inside | begins)
    was = [inside & each for each in closed]
    # A bare stop ends its side; the right side is read after the left one.
    is_known = was[0] | left.valid
    bare = [Signal(name=f"bare_{side}") for side in range(2)]
    m.d.comb += bare[0].eq(within & ~was[0] & left.valid & left.token.bare)
    m.d.comb += bare[1].eq(within & is_known & ~was[1] & right.valid & right.token.bare)
    now = [was[side] | bare[side] for side in range(2)]
    are_known = within & is_known & (was[1] | right.valid)
    ends = Signal()
    compares = Signal()
    m.d.comb += ends.eq(are_known & now[0] & now[1])
    m.d.comb += compares.eq(are_known & ~(now[0] & now[1]))
    uses = [Signal(name=f"uses_{side}") for side in range(2)]
    for side, other in ((0, 1), (1, 0)):
        is_lower = coordinates[side] <= coordinates[other]
        m.d.comb += uses[side].eq(compares & ~now[side] & (now[other] | is_lower))
        m.d.comb += u.inputs[side].take.eq(outside | bare[side] | uses[side])
    matches = Signal()
    ends_both = Signal()
    m.d.comb += matches.eq(uses[0] & uses[1])
    after = [
        now[side] | (uses[side] & (each.token.level != 0)) for side, each in enumerate(u.inputs)
    ]
    m.d.comb += ends_both.eq(ends | (matches & after[0] & after[1]))

    stop = Mux(bare[0] | uses[0], left.token.level, stops[0])
    other_stop = Mux(bare[1] | uses[1], right.token.level, stops[1])
    sent = token("sent")
    m.d.comb += sent.bare.eq(~matches)
    m.d.comb += sent.level.eq(Mux(outside, left.token.level, Mux(ends_both, stop, 0)))
    m.d.comb += sent.empty.eq(Mux(outside, left.token.empty, 0))
    with m.If(matches):
        m.d.comb += sent.rows.eq(1), sent.cols.eq(1), sent.valid_rows.eq(1), sent.valid_cols.eq(1)
        m.d.comb += sent.control.eq(Cat(coordinates[0], *payloads))
    pushes = outside | ends | matches
    has_left = emitter.push(pushes, sent, every)
    emitter.close()

    # A comparison takes a cycle. After a match, the next one waits until the match has left.
    m.d.sync += waits.eq((matches & ~has_left) | (waits & ~emitter.leaves))
    stays = wire(m, "stays", (inside | begins) & ~ends_both)
    m.d.sync += is_inside.eq(stays)
    for side in range(2):
        m.d.sync += closed[side].eq(after[side] & stays)
    m.d.sync += [stops[0].eq(stop), stops[1].eq(other_stop)]
    is_large = any_of(
        used & overflows([each.token.control], count * bits)
        for used, each, count in zip(uses, u.inputs, items, strict=True)
    )
    differs = (outside | begins) & (are_empty[0] != are_empty[1])
    differs |= (ends_both & (stop != other_stop)) | (ends_first & (stops[0] != stops[1]))
    m.d.comb += u.fault.eq(differs | is_large)
    is_through = emitter.empty & ~stays & ~compares & ~waits
    m.d.comb += u.done.eq(is_through & left.over & right.over)
    return u
