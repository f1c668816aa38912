"""The dashboard: its built files, served at the bare domain and the loopback names (decision 0038)."""
