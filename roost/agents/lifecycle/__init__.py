"""The life of agents: workflows from creation to deletion, versions, archives, self-service, the system."""
