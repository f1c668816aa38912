"""The state of the deployment, for its operator."""
