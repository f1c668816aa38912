"""The model gateway `/v0/llm/v1`: which models there are, answers through upstreams, and counting per agent."""
