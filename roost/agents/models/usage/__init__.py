"""Usage reports: what a tenant and its agents used of models."""
