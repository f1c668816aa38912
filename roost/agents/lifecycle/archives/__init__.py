"""Archives: one agent as one file, exported here and imported on any server."""
