"""Containers of a Docker Engine, or of Podman's service with the same API."""
