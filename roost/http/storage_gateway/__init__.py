"""The HTTP of storage gateways: content by CID and path, in ranges, as listings, blocks, CARs and resized images."""
