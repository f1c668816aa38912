"""The agents' data plane: requests for an agent's own address, carried to its gateway inside the HTTP server itself."""
