"""What every request passes: its address, limits, early checks, and the table of routes."""
