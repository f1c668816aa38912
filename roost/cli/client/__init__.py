"""Connections of the command line to a server."""
