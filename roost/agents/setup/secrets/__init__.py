"""Secrets and variables of a tenant, attached to agents."""
