"""What a person does in an agent's box: run a command, read a file, upload one."""
