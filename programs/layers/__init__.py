"""Pieces of networks that several programs are made of."""
