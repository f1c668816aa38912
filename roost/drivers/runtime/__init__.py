"""Runtimes, which run containers."""
