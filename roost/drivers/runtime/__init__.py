"""What runs containers."""
