"""Files of an agent's workspace: list, download, upload, delete and move them, beyond the contract's two operations."""
