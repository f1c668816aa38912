"""Content by CID: packs of bytes, the index of their blocks, who holds them, and reading them back, verified."""
