"""Revocation of API keys, with the gateway tokens that their holders have read."""
