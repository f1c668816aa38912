"""Logs of an agent's processes."""
