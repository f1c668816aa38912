"""Pending and paired devices of an agent."""
