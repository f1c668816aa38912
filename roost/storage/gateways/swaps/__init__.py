"""Hot swaps: another CID served in place of one, on gateways with that plugin."""
