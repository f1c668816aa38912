"""Devices that want to talk to an agent, and those that may."""
