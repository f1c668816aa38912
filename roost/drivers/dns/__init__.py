"""Name servers: what the public DNS says of a domain."""
