"""Storage gateways, which serve content by CID: names, access controls and plugins."""
