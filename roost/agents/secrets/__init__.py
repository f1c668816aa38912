"""Secrets and variables of a tenant, and which agents have them."""
