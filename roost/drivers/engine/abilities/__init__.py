"""Contracts of optional engine abilities; an engine has None for an ability that it lacks."""
