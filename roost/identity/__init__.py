"""Authentication and authorisation: tenants, plans, API keys (service JWTs), gateway tokens, platform tokens."""
