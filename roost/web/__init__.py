"""HTTP infrastructure: error bodies, common headers, body limits."""
