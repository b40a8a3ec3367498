"""The server's access log as transfers: `follow` reads, `line` parses, `rows` finishes."""
