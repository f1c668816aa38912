"""Hermes, an assistant from PyPI, in its own virtual environment."""
