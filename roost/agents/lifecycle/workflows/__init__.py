"""Workflows that cross slices: launch, start, restart, update, delete, and the reconciler."""
