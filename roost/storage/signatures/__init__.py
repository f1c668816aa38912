"""Wallet signatures: a person's statement that a CID is theirs, checked and kept beside the file."""
