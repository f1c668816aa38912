"""Model providers: the contract, a scripted stand-in, OpenAI-compatible and Anthropic endpoints."""
