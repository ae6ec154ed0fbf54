"""What tests of the report share."""

from dataclasses import replace

NASTY = "<script>alert(1)</script>"


def nasty(questionnaire):
    """The questionnaire with item q003 worded like a script."""
    items = tuple(
        replace(item, wording=NASTY) if item.name == "q003" else item for item in questionnaire.items
    )
    return replace(questionnaire, items=items)
