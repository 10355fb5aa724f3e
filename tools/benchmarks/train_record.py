# SPDX-License-Identifier: MIT
"""What tools/bench train has recorded: beside a page, its rows as JSON, so that a later run adds other cases or takes the
place of some, and goes on where one was cut off."""
import json
import os

from benchmarks import train_page
from benchmarks.environment import Missing
from benchmarks.train_cases import CASES


def data_file(page):
    return page.with_suffix(".json")


def key(row):
    return row.case.name, row.threads


def text(rows, setting):
    """JSON, a line for each row. setting: what all rows of a page share, name -> text."""
    lines = (f"  {json.dumps({**row._asdict(), 'case': row.case.name})}" for row in rows)
    return f'{{\n "setting": {json.dumps(setting)},\n "rows": [\n' + ",\n".join(lines) + "\n ]\n}\n"


def known(page, setting):
    """(case, threads) -> row: what the page has, whose setting must be this one."""
    data = data_file(page)
    if not page.exists() and not data.exists():
        return {}
    if not data.exists():
        raise Missing(f"{page}: expected its rows in {data.name} beside it; without them, nothing of the page could be kept. "
                      "Remove it to record another")
    found = json.loads(data.read_text())
    for name, value in setting.items():
        if found["setting"][name] != value:
            raise Missing(f"{page}: recorded with {name} {found['setting'][name]}, now it is {value}: they cannot share a page")
    rows = (train_page.Row(**{**row, "case": CASES[row["case"]]}) for row in found["rows"] if row["case"] in CASES)
    return {key(row): row for row in rows}


def replace(path, content):
    """At once: what is there stays whole if this is cut off."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(content)
    os.replace(new, path)


def write(page, rows, setting):
    """The page and its data. rows: as known() has them."""
    names = list(CASES)
    ordered = [rows[each] for each in sorted(rows, key=lambda each: (names.index(each[0]), each[1]))]
    replace(data_file(page), text(ordered, setting))
    replace(page, train_page.page(ordered, **setting))
