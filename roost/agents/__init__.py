"""The wing `/v0`: assistants and all that belongs to them, in ordered slices."""
