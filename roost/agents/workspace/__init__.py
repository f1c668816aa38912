"""What a person does in an agent's container: run a command, read a file, upload one."""
