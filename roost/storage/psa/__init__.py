"""The IPFS Pinning Service API 1.0.0: pins by CID in the form that every IPFS node speaks."""
