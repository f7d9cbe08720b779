"""What lies between units: a mesh of sites, routes over it, and the fair shares of its links."""

from __future__ import annotations

from fabric.graph.hardware.mesh import Mesh, Route, Site
from fabric.timing.network.transfers import Transfers

__all__ = ["Mesh", "Route", "Site", "Transfers"]
