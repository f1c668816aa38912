"""Content by CID: packs of bytes, the index of their blocks, their holders, and verified reading (decision 0013)."""
