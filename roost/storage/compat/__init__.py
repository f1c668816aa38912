"""Storage APIs of supported clients: the pinning API from before `/v3`, and the IPFS Pinning Service API."""
