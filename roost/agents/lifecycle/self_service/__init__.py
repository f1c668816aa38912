"""An agent's access to its own identity, status and platform token."""
