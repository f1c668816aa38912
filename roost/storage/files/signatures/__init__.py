"""Wallet signatures of files: verified statements of ownership."""
