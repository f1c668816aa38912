"""Content addressing without I/O: CIDs, dag-pb nodes, UnixFS files and directories, CARs."""
