"""The public IPFS network, from which content is fetched by CID."""
