"""Versions of engines, and installation of missing ones."""
