"""Containers by bubblewrap: no daemon, no image, and no root needed."""
