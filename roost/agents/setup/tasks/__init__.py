"""Scheduled tasks of an agent, stored and run by its engine."""
