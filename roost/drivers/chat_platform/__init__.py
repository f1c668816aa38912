"""Chat platforms: verification of bot tokens."""
