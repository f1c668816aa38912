"""Roost: a self-hosted cloud for AI agents, with content-addressed storage beside it."""

__version__ = "0.1.0"
