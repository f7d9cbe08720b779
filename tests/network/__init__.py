"""Compares the network with traces of a real chip and curves of a cycle-level simulator."""
