"""Names of the internet that lead to an agent or a storage gateway: who may have one, and proof that it is theirs."""
