"""Domains of an agent: platform subdomains and domains of the tenant's own."""
