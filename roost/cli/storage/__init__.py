"""Commands of the storage API."""
