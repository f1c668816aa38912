"""Scheduled tasks of an agent, kept and run by its engine."""
