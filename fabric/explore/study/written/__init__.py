"""Output of studies: progress, tables, pictures, pages and files of points."""
