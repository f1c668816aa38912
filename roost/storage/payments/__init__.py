"""Payments for private content (x402): checked, settled once, and recorded."""
