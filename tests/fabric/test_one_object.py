from __future__ import annotations

import io
import json
import signal
import sys

import pytest
from typing_extensions import override

from fabric.shell.json_object import allow_one_object, print_json
from fabric.timing.machine.terminations import Terminations

_OBJECT = {"status": "completed", "cycles": 42}


class _Interrupting(io.StringIO):
    def __init__(self, signals: int) -> None:
        super().__init__()
        self._signals = signals

    @override
    def write(self, text: str) -> int:
        super().write(text[:5])
        for _ in range(self._signals):
            signal.raise_signal(signal.SIGTERM)
        self._signals = 0
        super().write(text[5:])
        return len(text)


@pytest.mark.parametrize(("signals", "whole"), [(1, True), (2, False)])
def test_first_signal_keeps_the_object_whole(
    signals: int, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stdout = _Interrupting(signals)
    monkeypatch.setattr(sys, "stdout", stdout)
    allow_one_object()
    with pytest.raises(KeyboardInterrupt), Terminations().handled():
        print_json(_OBJECT)
    if whole:
        assert json.loads(stdout.getvalue()) == _OBJECT
    else:
        assert len(stdout.getvalue()) == 5
