"""The agents API, `/v0`, in ordered slices."""
