"""Who may enter: tenants and plans, API keys (service JWTs), gateway tokens, agent ownership, the door."""
