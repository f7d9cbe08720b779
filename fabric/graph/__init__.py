"""Programs as graphs, their types and layouts, and hardware descriptions."""
