"""What this machine has: processors, memory, disks, sockets, threads, processes."""
