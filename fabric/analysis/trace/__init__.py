"""The event trace: recording, reading, accounts of cycles, displays and exports."""
