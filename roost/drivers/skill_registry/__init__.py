"""Registries of skills on other servers."""
