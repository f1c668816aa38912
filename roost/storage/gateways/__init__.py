"""Storage gateways: the addresses that serve content by CID, who may use them, and their plugins."""
