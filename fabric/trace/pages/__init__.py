"""The page of ``trace report``: one file, nothing to load, drawn as SVG."""
