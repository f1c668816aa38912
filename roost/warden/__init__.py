"""The program that is pid 1 of every box. It runs alone, from its one folder, with the standard library only."""
