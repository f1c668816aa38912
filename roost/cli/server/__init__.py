"""Commands of the server and its operator."""
