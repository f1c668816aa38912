"""Servers that share a database: which are there, and which agents they have."""
