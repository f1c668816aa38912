"""Git access to agents: clone, pull and push over the smart HTTP protocol."""
