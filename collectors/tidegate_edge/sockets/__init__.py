"""The kernel's sockets as rows: read, decoded, classified, cut."""
