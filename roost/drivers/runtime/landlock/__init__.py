"""Sandboxes without namespaces, by Landlock and seccomp, for servers that may not make any."""
