"""Chat channels of an agent: telegram, slack, discord, whatsapp."""
