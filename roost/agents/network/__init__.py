"""How an agent is reached and what it reaches: routes, domains, egress, sign-in."""
