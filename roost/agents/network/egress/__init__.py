"""HTTP proxy through which agents reach the internet."""
