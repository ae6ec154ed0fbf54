"""Messy files go through the app: each message has a button, until the file can be fitted and scored."""

import re

import pandas as pd
import pytest

from newcomer_files import FILES

CORE = ("study.xlsx", "visits.csv")
CASES = [
    pytest.param(file, id=file.name, marks=[] if file.name in CORE else [pytest.mark.long]) for file in FILES
]


def pressed(server, run, page, label):
    """Press the button whose text begins so; the page that follows."""
    found = re.findall(r'name="remedy" value="(\w+)">([^<]*)<', page.text)
    key = next((key for key, text in found if text.startswith(label)), None)
    assert key is not None, (label, found)
    assert server.post(f"/runs/{run}/remedy", {"remedy": key}).status == 303
    return server.page(f"/runs/{run}/check")


@pytest.mark.parametrize("file", CASES)
def test_from_opening_to_scores(server, tmp_path, file):
    file.write(tmp_path / file.name)
    content = (tmp_path / file.name).read_bytes()
    more = {}
    if file.dictionary:
        more = {"dictionary": (file.dictionary, (tmp_path / file.dictionary).read_bytes())}
    run = server.opened(file.name, content, **more)
    page = server.page(f"/runs/{run}/check")
    for label in file.clicks:
        assert "Continue to the fit" not in page.text
        page = pressed(server, run, page, label)
    assert "Continue to the fit" in page.text and "Must be fixed" not in page.text
    columns = re.findall(r'<input type="hidden" name="column" value="([^"]*)">', page.text)
    assert len(columns) >= file.items
    done = server.fitted(run, n_components="2")
    assert server.get(f"/runs/{run}").getheader("location").endswith("results"), done.text
    fields = {}
    for _ in range(3):  # what is filled in, as the page asks
        scored = server.post(f"/runs/{run}/score", fields, files={"answers": (file.name, content), **more})
        if scored.status == 200:
            break
        assert "what is filled in below will then be used" in scored.text, scored.text
        fields |= dict(re.findall(r'<input type="text" id="[^"]*" name="(\w+)" value="([^"]+)"', scored.text))
        fields |= {"doubled": "first"} if "<option selected>first" in scored.text else {}
    assert scored.status == 200 and "Download the scores" in scored.text, scored.text
    server.post(f"/runs/{run}/remove")


def test_the_header_is_chosen_among_the_first_rows(server):
    rows = "".join(f"P{i},{i % 3},{(i + 1) % 3},{i % 2},{(i * i) % 3}\n" for i in range(60))
    text = "a,b,c,d,e\n" + "id,q1,q2,q3,q4\n" + rows
    run = server.opened("odd.csv", text.encode())
    page = server.page(f"/runs/{run}/check")
    assert f'href="/runs/{run}/rows"' in page.text
    seen = server.page(f"/runs/{run}/rows")
    assert seen.text.count("Use row") == 9 and "<td>q4</td>" in seen.text
    assert server.post(f"/runs/{run}/rows", {"header_row": "2"}).status == 303
    page = server.page(f"/runs/{run}/check")
    assert "Row 2 was read as the header" in page.text
    assert "60 of 60 rows, with the ids in" in page.text
    assert server.post(f"/runs/{run}/rows", {"header_row": "x"}).status == 400


def test_a_sheet_is_chosen(server, tmp_path):
    path = tmp_path / "book.xlsx"
    with pd.ExcelWriter(path, engine="xlsxwriter") as book:
        for name, shift in (("Pilot", 0), ("Main", 1)):
            answers = [[f"P{i}", *((i * j + shift) % 4 for j in range(1, 5))] for i in range(60 + shift)]
            pd.DataFrame(answers, columns=["id", *(f"q{j}" for j in range(1, 5))]).to_excel(
                book, sheet_name=name, index=False
            )
    run = server.opened("book.xlsx", path.read_bytes())
    assert "60 of 60 rows" in server.page(f"/runs/{run}/check").text
    assert "<option selected>Pilot</option><option>Main</option>" in server.page(f"/runs/{run}/rows").text
    assert server.post(f"/runs/{run}/rows", {"sheet": "Main"}).status == 303
    assert "61 of 61 rows" in server.page(f"/runs/{run}/check").text
