"""Uploads over HTTP, which become files and folders atomically."""
