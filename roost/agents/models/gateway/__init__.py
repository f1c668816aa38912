"""The model gateway `/v0/llm/v1`: catalogues, completions through upstreams, and usage per agent."""
