"""Sends webhook messages to URLs that tenants name."""
