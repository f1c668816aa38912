"""Content addressing: CIDs, dag-pb nodes, UnixFS files and directories, CARs. Pure: no file, no socket, no database."""
