"""Files in and out: readers for a study's tables, codebooks, and result tables."""

from icqf.errors import InputError
from icqf.io.codebook import codebook_from, format_codebook, read_codebook, write_codebook
from icqf.io.readers.questionnaires import read_questionnaire
from icqf.io.readers.studies import Study, read_abcd, read_hbn
from icqf.io.readers.tables import Table, read_table
from icqf.io.write import write_table

__all__ = [
    "InputError",
    "Study",
    "Table",
    "codebook_from",
    "format_codebook",
    "read_abcd",
    "read_codebook",
    "read_hbn",
    "read_questionnaire",
    "read_table",
    "write_codebook",
    "write_table",
]
