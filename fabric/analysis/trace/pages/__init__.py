"""The page of ``trace report``: one file that loads nothing, drawn by the browser."""
