"""The versions of engines that agents can run, and how a missing one gets here."""
