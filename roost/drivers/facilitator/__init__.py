"""Facilitators: check payments (x402) and send them to a chain."""
