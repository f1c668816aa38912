"""Payment instructions: what must be paid for private files (x402)."""
