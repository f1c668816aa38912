"""Commands, file reads and uploads in an agent's container."""
