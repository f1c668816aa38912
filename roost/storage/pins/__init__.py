"""Pins by CID: content retrieved from the public network and stored as public files."""
