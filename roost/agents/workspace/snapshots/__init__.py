"""Snapshots of agents' workspaces: take, list, compare, label and reset to them."""
