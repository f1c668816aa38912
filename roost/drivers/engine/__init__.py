"""The assistant software that agents run."""
