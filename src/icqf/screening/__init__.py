"""What the columns of a table are: items, ranges, answer words, sums of others, codes of missing answers."""
