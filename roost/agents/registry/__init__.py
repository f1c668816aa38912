"""The agent record, its states and transitions, and the way to an agent's running parts."""
