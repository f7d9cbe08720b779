"""What units and channels say of themselves, taken from the arrays of the compiled loop."""

from __future__ import annotations

from fabric.compiled import columns as c
from fabric.compiled.arrays import Arrays, Joint, Stage
from fabric.compiled.boundary import Boundary
from fabric.compiled.kernel_channels import goes_on
from fabric.engine.networked_channel import NetworkedChannel
from fabric.engine.unit import Wait
from fabric.telling.causes import Operation

__all__ = ["publish"]


def publish(arrays: Arrays, boundary: Boundary) -> None:
    """Let units and channels say how far they are."""
    for stage, row in zip(arrays.stages, arrays.rows.tolist(), strict=True):
        unit = stage.unit
        # A burst may have been answered since, which the loop has not been told.
        unit.now = max(unit.now, row[c.NOW]) if row[c.STATUS] == c.OFF_CHIP else row[c.NOW]
        unit.busy_cycles, unit.flops = row[c.BUSY], row[c.FLOPS]
        unit.finished = row[c.STATUS] == c.FINISHED
        if unit.wait is not None:
            unit.wait = None if unit.finished else _wait(arrays, stage, row)
    rows = arrays.channels.tolist()
    for number, (joint, row) in enumerate(zip(arrays.joints, rows, strict=True)):
        if joint.producer >= 0:
            _publish_sent(arrays, joint, row)
        if joint.consumer >= 0:
            _publish_taken(joint, row)
            boundary.show(number, row[c.TAKEN], row[c.ARRIVED])
        if isinstance(joint.channel, NetworkedChannel):
            if joint.consumer >= 0:
                joint.channel.way.links_cycles = row[c.LINKS]
            if joint.producer >= 0:
                closed = row[c.CLOSED] if row[c.CLOSED] >= 0 else None
                joint.channel.send_elsewhere(row[c.CARRIED], boundary.on_way(number), closed)


def _wait(arrays: Arrays, stage: Stage, row: list[int]) -> Wait:
    """Return what a stage that does not go on waits for."""
    now, status = row[c.NOW], row[c.STATUS]
    if status == c.NO_CREDIT:
        return Wait(Operation.SEND, (arrays.joints[row[c.WAIT]].channel,), now)
    if status == c.NO_ELEMENT:
        return Wait(Operation.RECEIVE, (arrays.joints[row[c.WAIT]].channel,), now)
    if status == c.DRAINING:
        going_on = tuple(
            channel
            for channel in stage.inputs
            if goes_on(arrays.number[channel], arrays.channels.reshape(-1))
        )
        return Wait(Operation.RECEIVE, going_on, now, any_of=True)
    if status == c.OFF_CHIP:
        return Wait(Operation.OFF_CHIP, (), now)
    if status == c.STUCK:
        awaited = stage.automaton.awaited(row[c.STATE])
        assert awaited is not None
        return Wait(Operation.RECEIVE, (stage.inputs[awaited.port],), now, stops=awaited.stops)
    return Wait(Operation.REACH, (), now)


def _publish_sent(arrays: Arrays, joint: Joint, row: list[int]) -> None:
    channel, assumed = joint.channel, joint.assumed
    if assumed is not None:
        first = row[c.COUNTED]
        rows = arrays.dimensions.array[first : first + row[c.RANK] + 1].tolist()
        assumed.count_sent(
            [each[c.SIZE] for each in rows],
            [each[c.GROUPS] for each in rows],
            [(each[c.LEAST], each[c.MOST]) for each in rows],
        )
    channel.count_sent(row[c.BARE_SENT], row[c.FULL], row[c.CREDIT])
    is_networked = isinstance(channel, NetworkedChannel)
    if joint.consumer >= 0 and row[c.CLOSED] >= 0 and not is_networked:
        channel.closed_cycle = row[c.CLOSED]


def _publish_taken(joint: Joint, row: list[int]) -> None:
    joint.channel.count_taken(
        row[c.TAKEN],
        row[c.EMPTY],
        row[c.LEFT_OVER],
        row[c.PEAK],
        row[c.LAST_CREDIT],
        ended=bool(row[c.ENDED]),
    )
