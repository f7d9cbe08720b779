"""The sub-commands of the command line, one module each."""
