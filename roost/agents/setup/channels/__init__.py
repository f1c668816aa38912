"""Chat channels of an agent: Telegram, Slack, Discord, WhatsApp."""
