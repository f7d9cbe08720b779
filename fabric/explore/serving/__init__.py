"""Simulates a server of a language model: latency and throughput at each load of requests."""
