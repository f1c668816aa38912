"""What engines may be able to do beside running: an ability is a small contract, and what an engine lacks is None."""
