"""Groups: named containers of files, public or private."""
