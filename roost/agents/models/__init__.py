"""Language models of agents: the model gateway, servers and keys of their own, and what they used."""
