"""The client of the warden, the same under every runtime."""
