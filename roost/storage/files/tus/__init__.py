"""Uploads in parts by the TUS protocol 1.0.0, which go on where they were cut off, also after a restart."""
