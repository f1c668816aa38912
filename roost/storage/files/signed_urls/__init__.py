"""Signed addresses: leave to fetch one private file, or to upload one, handed on without a key."""
