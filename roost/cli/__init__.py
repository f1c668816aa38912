"""Command line: noun first, then verb; `-o json` prints records as JSON; exit codes name the kind of error."""
