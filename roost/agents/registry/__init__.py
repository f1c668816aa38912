"""The agent record, its states and transitions, and access to an agent's runtime."""
