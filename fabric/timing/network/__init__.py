"""What lies between units: flows over links, and the fair shares of them."""

from __future__ import annotations
