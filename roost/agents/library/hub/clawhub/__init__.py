"""The hub in the protocol of ClawHub, for its command line and for engines that have a client of it.

A skill's name there is `name` or `@owner/name`; a name alone is the skill that was first published under it.
"""
