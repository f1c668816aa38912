"""Agent templates from Git repositories: submit, list, update, archive, and the public marketplace."""
