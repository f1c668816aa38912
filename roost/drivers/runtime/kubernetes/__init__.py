"""Kubernetes as a runtime: pods and claims of agents, and the client of its API (decision 0058)."""
