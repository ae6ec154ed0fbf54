"""One module per format: HTML, Markdown, Word, LaTeX, JSON and terminal, all from the same document."""
