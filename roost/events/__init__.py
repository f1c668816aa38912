"""Events: what changes in a tenant, as rows of the same transactions and as streams of clients."""
