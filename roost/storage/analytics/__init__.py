"""How often and how much storage gateways served: counted by day, asked by CID, file name, user agent or referer."""
