"""The proxy through which agents reach the internet, and what it refuses."""
