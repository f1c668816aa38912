"""Commands of agents."""
