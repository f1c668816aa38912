"""Agents made from templates: what each was made from, and what it still waits for."""
