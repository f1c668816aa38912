"""Uploads: bytes that come over HTTP become files and folders, as one thing or not at all."""
