"""Browser sessions of the dashboard: signing in by key or one-time link, roles, and the cookie as a credential."""
