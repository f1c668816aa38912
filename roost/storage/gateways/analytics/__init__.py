"""Analytics of storage gateways: requests and bytes per day, by CID, file name, user agent or referer."""
