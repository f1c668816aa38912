"""What an agent's processes wrote."""
