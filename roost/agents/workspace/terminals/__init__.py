"""Terminals: interactive shells in an agent's container."""
