"""Sandboxes for programs of ours that read hostile input."""
