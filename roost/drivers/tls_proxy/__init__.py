"""The program that terminates TLS in front of the server."""
