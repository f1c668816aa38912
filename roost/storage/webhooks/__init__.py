"""Webhooks: what happens to files, told to addresses that the tenant names."""
