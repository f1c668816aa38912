"""What a storage gateway gives to whom: admission, swaps, the way from a CID and a path to content."""
