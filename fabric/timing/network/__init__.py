"""What lies between units: flows over links, and the fair shares of them."""

from __future__ import annotations

from fabric.graph.hardware.latency import Mesh, Route, Site
from fabric.timing.network.transfers import Transfers

__all__ = ["Mesh", "Route", "Site", "Transfers"]
