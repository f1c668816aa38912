"""The platforms where people talk to agents: whether they know a bot."""
