"""The traffic, memory and operations of a program, as expressions of data-dependent sizes."""
