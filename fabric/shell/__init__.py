"""The command line: commands, parameters and output."""
