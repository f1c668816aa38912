"""Vectors in rows of PostgreSQL, with the extension `vector`."""
