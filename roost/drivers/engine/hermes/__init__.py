"""Hermes: the assistant from PyPI, in a virtual environment of its own."""
