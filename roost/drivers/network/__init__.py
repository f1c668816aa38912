"""The public network: where content that is not here is asked for by its CID."""
