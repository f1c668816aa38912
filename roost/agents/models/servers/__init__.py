"""Model servers on this machine: which ones answer on their usual ports, and their use by an agent."""
