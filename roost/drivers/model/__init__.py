"""Where models come from: the contract, the scripted stand-in, OpenAI-compatible and Anthropic endpoints."""
