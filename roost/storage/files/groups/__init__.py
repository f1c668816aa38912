"""Groups: named containers of files on one network, and the files in them."""
