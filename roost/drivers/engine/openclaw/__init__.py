"""OpenClaw, an assistant from npm, on its own Node, used over its WebSocket RPC."""
