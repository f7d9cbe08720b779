"""Machines: their assembly from plans, their run with trio, and the signals that end it."""

from __future__ import annotations
