"""One reader per kind of file."""
