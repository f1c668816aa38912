"""The storage API: files with CIDs."""
