"""Where iterations run. An engine takes problems and starts, and gives back factorizations."""
