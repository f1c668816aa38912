"""Git repositories of agents."""
