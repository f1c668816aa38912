"""A fleet of agents as a file: what it declares, what a server has, the difference, and its way to the server."""
