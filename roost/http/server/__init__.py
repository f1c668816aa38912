"""The server of the port: its HTTP connection, the application, relays of containers, health."""
