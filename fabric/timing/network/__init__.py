"""What lies between units: flows over links, and the fair shares of them."""

from __future__ import annotations

from fabric.graph.hardware.latency import Mesh as Mesh
from fabric.graph.hardware.latency import Route as Route
from fabric.graph.hardware.latency import Site as Site
