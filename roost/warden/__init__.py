"""Program that runs as pid 1 of every container, from this folder alone, with the standard library only."""
