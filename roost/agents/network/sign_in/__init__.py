"""One-time links that sign a browser in at an agent's address."""
