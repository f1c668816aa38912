"""The IPFS Pinning Service API 1.0.0: pins by CID as IPFS nodes request them."""
