"""A plan for the small study, and the answers to the questions of a registration."""

from icqf.io.preregistration import EXISTING_DATA, QUESTIONS

ANSWERS = {question.key: f"About {question.heading}." for question in QUESTIONS if question.needed} | {
    "title": "Two factors",
    "existing_data": EXISTING_DATA[1],
}


def write_decisions(path, expected=(), **answers):
    """A filled-in template; an answer of None is left out."""
    lines = [f"{key} = '''\n{text}\n'''" for key, text in (ANSWERS | answers).items() if text is not None]
    path.write_text("\n".join([*lines, "[expected]", *expected, ""]), encoding="utf-8")
    return path
