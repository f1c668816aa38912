"""Vectors of files, exact search in groups, and the groups that agents may search."""
