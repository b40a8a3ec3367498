"""One experiment a file: what is asked, how it is measured, and the claims that the numbers must bear out."""
