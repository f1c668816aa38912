"""Image transformation: resizing, cropping and format conversion."""
