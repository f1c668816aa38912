"""Path routes of an agent: prefixes of its address that lead to ports of its own programs."""
