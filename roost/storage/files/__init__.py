"""Files: what tenants uploaded or pinned, each a name for a CID."""
