"""The storage wing: files with CIDs."""
