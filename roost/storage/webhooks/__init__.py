"""Webhooks: events of files, delivered to URLs of the tenant."""
