"""The event trace: how it is recorded, read, accounted for, shown and exported."""
