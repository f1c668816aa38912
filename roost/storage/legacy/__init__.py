"""The pinning API before `/v3`, for clients that still speak it: everything in it is on the public network."""
