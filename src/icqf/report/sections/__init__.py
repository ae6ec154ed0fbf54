"""The sections of the report: in each file the values of a section, its sentences, and what it shows."""
