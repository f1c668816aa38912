"""OpenClaw: the assistant from npm, on a Node of its own, driven over its WebSocket RPC."""
