"""What an agent is given: secrets, channels, devices, tasks, and its engine's configuration."""
