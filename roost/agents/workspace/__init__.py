"""What an agent's container holds and runs: files, commands, terminals, logs, scripts, snapshots, Git."""
