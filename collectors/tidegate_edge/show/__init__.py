"""`tidegate-collector show`: the host's sockets as a live table for people."""
