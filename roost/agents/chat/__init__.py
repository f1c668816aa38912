"""Chats with agents, whose gateways answer."""
