"""Certificates and proxies in front of the server."""
