"""The server of the port: the application, relays of containers, health."""
