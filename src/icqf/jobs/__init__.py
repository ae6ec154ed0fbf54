"""Resumable work: the journal, the parallel map, and progress."""
