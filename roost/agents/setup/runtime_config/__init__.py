"""The runtime configuration of an agent's engine."""
