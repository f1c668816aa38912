"""Pins by CID: content that others have, fetched from the public network until it is a file here."""
