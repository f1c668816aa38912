"""The program that is pid 1 of every container. It runs alone, from its one folder, with the standard library only."""
