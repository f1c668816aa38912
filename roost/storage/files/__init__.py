"""Files: named CIDs that tenants uploaded or pinned."""
