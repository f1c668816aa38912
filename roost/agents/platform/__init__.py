"""The agent's own view: who it is, and what it may do on its owner's behalf."""
