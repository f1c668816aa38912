"""The command line: noun first, then verb; `-o json` on all that print records; exit codes that tell."""
