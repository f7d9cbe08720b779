"""The page of ``trace report``: one file, nothing to load, drawn by the browser that opens it."""
