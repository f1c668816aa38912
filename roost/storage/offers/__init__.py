"""Offers: what is public here is announced to the public network, where there is one that can be told."""
