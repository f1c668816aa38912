"""The hub: published skills that every tenant can browse and install."""
