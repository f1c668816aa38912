"""Making other images of images: smaller, cut, in another format."""
