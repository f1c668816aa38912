"""Formats of documents. Only the worker imports them: they read hostile input, and their libraries are large."""
