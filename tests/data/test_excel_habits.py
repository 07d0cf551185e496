"""Logs as people have them: decimal commas, dates, encodings, spreadsheets, databases."""

import datetime
import sqlite3
from pathlib import Path

import duckdb
import numpy as np
import openpyxl
import pytest

from surefoot import read_transitions

ROLES = {
    "state": "zustand", "action": "aktion", "reward": "gewinn", "episode": "maschine",
    "step": "datum",
}  # fmt: skip
WEEKS = 30
STATES, ACTIONS = ("neu", "gebraucht", "schäbig"), ("läuft", "größer")


def rows():
    for machine in range(3):
        for week in range(WEEKS):
            yield (
                machine,
                datetime.date(2026, 1, 5) + datetime.timedelta(weeks=week),
                STATES[(week * 7 + machine) % 3],
                ACTIONS[(week + machine) % 2],
                1234.5 - 100 * week,
            )


def german(number):
    return f"{number:,.2f}".translate(str.maketrans(",.", ".,"))


def text(separator=";", written=german, date="%d.%m.%Y", kept=lambda row: True):
    lines = [("maschine", "datum", "zustand", "aktion", "gewinn")]
    lines += [(m, d.strftime(date), s, a, written(r)) for m, d, s, a, r in filter(kept, rows())]
    return "\n".join(separator.join(map(str, line)) for line in lines) + "\n"


def codes(counts):
    return [finding.code for finding in counts.log.findings]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """The same log as a careful person writes it."""
    path = tmp_path_factory.mktemp("plain") / "log.csv"
    path.write_text(text(",", repr, "%Y-%m-%d"), encoding="utf-8")
    return read_transitions(path, **ROLES)


def assert_same(counts, plain):
    assert counts.state_labels == plain.state_labels
    assert counts.action_labels == plain.action_labels
    np.testing.assert_array_equal(counts.count, plain.count)
    np.testing.assert_array_equal(counts.reward_mean, plain.reward_mean)
    np.testing.assert_array_equal(counts.starts, plain.starts)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le"])
def test_encodings_decimal_commas_and_dates_are_found_out_and_said(tmp_path, plain, encoding):
    path = tmp_path / "log.csv"
    path.write_bytes(text().encode(encoding))
    counts = read_transitions(path, **ROLES)
    assert_same(counts, plain)
    assert {"numbers_read", "dates_read"} <= set(codes(counts))
    assert ("recoded" in codes(counts)) == (not encoding.startswith("utf-8"))


def test_a_named_encoding_must_fit(tmp_path, plain):
    path = tmp_path / "log.csv"
    path.write_bytes(text().encode("cp1252"))
    assert_same(read_transitions(path, encoding="cp1252", **ROLES), plain)
    with pytest.raises(ValueError, match=r"log\.csv: .*(is not utf-16 text|there is no column)"):
        read_transitions(path, encoding="utf-16", **ROLES)
    with pytest.raises(ValueError, match="encoding='klingon' is not known"):
        read_transitions(path, encoding="klingon", **ROLES)


def test_rows_are_counted_when_a_file_is_recoded(tmp_path, monkeypatch):
    path = tmp_path / "log.csv"
    path.write_bytes(text().encode("cp1252"))
    monkeypatch.setattr("surefoot.data.found_sources.count_records", lambda *_: 12)
    with pytest.raises(ValueError, match="12 rows were written in UTF-8 and 90 read"):
        read_transitions(path, **ROLES)


@pytest.mark.parametrize(
    "written",
    [
        german,
        lambda number: f"{number:,.2f}",
        lambda number: f"{number:,.2f}".replace(",", "'"),
        lambda number: f"{number:,.1f}".replace(",", "\u00a0").replace(".", ","),
        lambda number: str(number).replace(".", ","),
    ],
)
def test_thousands_separators(tmp_path, plain, written):
    path = tmp_path / "log.csv"
    path.write_text(text(written=written), encoding="utf-8")
    assert_same(read_transitions(path, **ROLES), plain)


def small(tmp_path, *rewards, separator=";"):
    lines = ["state;action;reward;next_state", *(f"a;x;{reward};b" for reward in rewards)]
    path = tmp_path / "small.csv"
    path.write_text("\n".join(lines).replace(";", separator) + "\n", encoding="utf-8")
    return path


def test_a_number_that_may_mean_two_things_is_refused(tmp_path):
    path = small(tmp_path, "1.234", "12.500")
    with pytest.raises(ValueError, match=r"'1\.234' may be 1234 or 1\.234\. Pass decimal=','"):
        read_transitions(path)
    assert read_transitions(path, decimal=",").reward_high.tolist() == [12500.0]
    assert read_transitions(path, decimal=".").reward_high.tolist() == [12.5]
    # 0.500 is no grouping: the point is a decimal one.
    assert read_transitions(small(tmp_path, "1.234", "0.500")).reward_high.tolist() == [1.234]
    # A comma between fields leaves no doubt either.
    path = small(tmp_path, "1.234", "12.500", separator=",")
    assert read_transitions(path).reward_high.tolist() == [12.5]


def test_two_styles_in_one_column_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"'1\.5' shows a decimal point and '2,5' a decimal comma"):
        read_transitions(small(tmp_path, "1.5", "2,5"))
    path = small(tmp_path, "1,5", "2,5", "abc")
    with pytest.raises(ValueError, match=r"line 4: reward is 'abc', not a number with a decimal c"):
        read_transitions(path)
    with pytest.raises(ValueError, match=r"line 2: reward is '1,5', not a number with a decimal p"):
        read_transitions(path, decimal=".")


@pytest.mark.parametrize(
    "date", ["%d/%m/%Y", "%m/%d/%Y", "%d.%m.%y", "%Y%m%d", "%d.%m.%Y %H:%M", "%Y/%m/%d"]
)
def test_dates_of_many_kinds(tmp_path, plain, date):
    path = tmp_path / "log.csv"
    path.write_text(text(date=date), encoding="utf-8")
    assert_same(read_transitions(path, **ROLES), plain)
    assert_same(read_transitions(path, date_format=date, **ROLES), plain)


def months(tmp_path, form):
    lines = ["e,k,state,action,reward"]
    for i in range(24):
        date = datetime.date(2026 + i // 12, 1 + i % 12, 1)
        lines.append(f"1,{date.strftime(form)},{'ab'[i % 2]},x,1")
    path = tmp_path / "months.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_months_are_no_decimals(tmp_path):
    # As numbers, 01.2026 would be followed by 01.2027.
    counts = read_transitions(months(tmp_path, "%m.%Y"), episode="e", step="k")
    assert counts.count.tolist() == [12, 11]
    assert "dates_read" in codes(counts)


def test_a_date_that_may_mean_two_things_is_refused(tmp_path):
    path = months(tmp_path, "%m/%d/%Y")
    with pytest.raises(ValueError, match=r"may be 1 January|may be .* date_format='%d/%m/%Y' or"):
        read_transitions(path, episode="e", step="k")
    counts = read_transitions(path, episode="e", step="k", date_format="%m/%d/%Y")
    assert counts.count.tolist() == [12, 11]
    with pytest.raises(ValueError, match=r"line 2: k is '01/01/2026', not a date such as %d\.%m"):
        read_transitions(path, episode="e", step="k", date_format="%d.%m.%Y")


def test_gaps_between_dates_are_left_out_and_counted(tmp_path, plain):
    path = tmp_path / "log.csv"
    gone = datetime.date(2026, 3, 2)
    path.write_text(text(kept=lambda row: row[1] != gone), encoding="utf-8")
    counts = read_transitions(path, **ROLES)
    # In each of three episodes two transitions are lost: that before the gap, and that after it.
    assert counts.count.sum() == plain.count.sum() - 6
    (gap,) = [found for found in counts.log.findings if found.code == "gaps_left_out"]
    assert gap.values == {"rows": 3, "usual": "7 days"}
    assert gap.level == "warning"
    assert gap in counts.findings
    assert counts.log.rows == 3 * WEEKS - 3
    # In a typed table too.
    table = {
        name: np.array(column)
        for name, column in zip(
            ("maschine", "datum", "zustand", "aktion", "gewinn"),
            zip(*[row for row in rows() if row[1] != gone], strict=True),
            strict=True,
        )
    }
    table["datum"] = np.array(table["datum"], dtype="datetime64[s]").astype(str)
    again = read_transitions(table, date_format="%Y-%m-%dT%H:%M:%S", **ROLES)
    assert again.count.sum() == counts.count.sum()


def test_weekends_are_no_gaps(tmp_path):
    first = datetime.date(2026, 1, 5)
    days = [first + datetime.timedelta(days=i) for i in range(40)]
    days = [day for day in days if day.weekday() < 5 and day != datetime.date(2026, 1, 14)]
    path = tmp_path / "log.csv"
    lines = [
        "e,k,state,action,reward",
        *(f"1,{day},{'ab'[i % 2]},x,1" for i, day in enumerate(days)),
    ]
    path.write_text("\n".join(lines) + "\n")
    counts = read_transitions(path, episode="e", step="k")
    (gap,) = [found for found in counts.log.findings if found.code == "gaps_left_out"]
    assert gap.values == {"rows": 1, "usual": "1 working day"}
    assert counts.count.sum() == len(days) - 2


def test_irregular_times_are_said(tmp_path):
    hours = np.cumsum(np.random.default_rng(0).integers(1, 500, 60))
    times = [datetime.datetime(2026, 1, 1) + datetime.timedelta(hours=int(h)) for h in hours]
    path = tmp_path / "log.csv"
    lines = ["e,k,state,action,reward", *(f"1,{t},{'ab'[i % 2]},x,1" for i, t in enumerate(times))]
    path.write_text("\n".join(lines) + "\n")
    counts = read_transitions(path, episode="e", step="k")
    assert codes(counts) == ["steps_irregular"]
    assert counts.count.sum() == 59


@pytest.mark.parametrize("kind", ["csv", "memory", "dates"])
def test_one_column_as_state_and_step(tmp_path, kind):
    table = {"e": [1, 1, 1, 2, 2], "week": [0, 1, 2, 0, 1], "action": list("xyxyx"), "r": [1.0] * 5}
    roles = {"state": "week", "step": "week", "episode": "e", "reward": "r"}
    if kind == "memory":
        counts = read_transitions(table, **roles)
    else:
        path = tmp_path / "log.csv"
        weeks = [f"0{w + 1}.01.2026" if kind == "dates" else w for w in table["week"]]
        lines = zip(table["e"], weeks, table["action"], table["r"], strict=True)
        body = "\n".join(",".join(map(str, line)) for line in lines)
        path.write_text("e,week,action,r\n" + body + "\n")
        counts = read_transitions(path, **roles)
    assert len(counts.state_labels) == 3
    assert counts.count.sum() == 3


def workbook(path: Path, *, sheets=1, blank=False):
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Export"
    sheet.append(["maschine", "datum", "zustand", "aktion", "gewinn"])
    for i, row in enumerate(rows()):
        sheet.append(list(row))
        if blank and i == 3:
            sheet.append([])
    for i in range(1, sheets):
        book.create_sheet(f"other {i}")
    book.save(path)
    return path


def test_a_spreadsheet_is_a_log(tmp_path, plain):
    assert_same(read_transitions(workbook(tmp_path / "a.xlsx"), **ROLES), plain)
    assert_same(read_transitions(workbook(tmp_path / "b.xlsx", blank=True), **ROLES), plain)
    two = workbook(tmp_path / "c.xlsx", sheets=2)
    with pytest.raises(ValueError, match=r"2 sheets \('Export', 'other 1'\). Say which one with s"):
        read_transitions(two, **ROLES)
    assert_same(read_transitions(two, sheet="Export", **ROLES), plain)
    with pytest.raises(ValueError, match="there is no sheet 'export'"):
        read_transitions(two, sheet="export", **ROLES)
    (tmp_path / "d.xlsx").write_bytes(b"no spreadsheet")
    with pytest.raises(ValueError, match="not a readable spreadsheet"):
        read_transitions(tmp_path / "d.xlsx", **ROLES)


def test_faults_in_a_spreadsheet_are_named_by_row(tmp_path):
    path = workbook(tmp_path / "a.xlsx", blank=True)
    book = openpyxl.load_workbook(path)
    book["Export"]["E9"] = "viel"
    book.save(path)
    with pytest.raises(ValueError, match=r"a\.xlsx, line 9: gewinn is 'viel', not a number"):
        read_transitions(path, **ROLES)


def test_a_spreadsheet_without_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "python_calamine", None)
    with pytest.raises(ValueError, match=r"needs the extra excel: pip install 'surefoot\[excel\]'"):
        read_transitions(workbook(tmp_path / "a.xlsx"), **ROLES)


def sqlite(path):
    with sqlite3.connect(path) as base:
        base.execute(
            "CREATE TABLE log (maschine INT, datum TEXT, zustand TEXT, aktion TEXT, gewinn REAL)"
        )
        listed = [(m, str(d), s, a, r) for m, d, s, a, r in rows()]
        base.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?)", listed)
        base.execute("CREATE TABLE other (x INT)")
    base.close()
    return path


def duck(path):
    with duckdb.connect(str(path)) as base:
        base.execute(
            "CREATE TABLE log "
            "(maschine INT, datum DATE, zustand VARCHAR, aktion VARCHAR, gewinn DOUBLE)"
        )
        base.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?)", [list(row) for row in rows()])
        base.execute("CREATE TABLE other (x INT)")
    return path


@pytest.mark.parametrize(
    ("make", "name"), [(sqlite, "log.db"), (duck, "log.duckdb"), (duck, "x.db")]
)
def test_a_database_is_a_log(tmp_path, plain, make, name):
    path = make(tmp_path / name)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"2 tables \('log', 'other'\). Say which one with table="):
        read_transitions(path, **ROLES)
    assert_same(read_transitions(path, table="log", **ROLES), plain)
    assert_same(read_transitions(path, query="SELECT * FROM log", **ROLES), plain)
    fewer = read_transitions(path, query="SELECT * FROM log WHERE maschine < 2", **ROLES)
    assert fewer.log.episodes == 2
    for query in ("DELETE FROM log", "DROP TABLE log", "SELECT 1; DELETE FROM log"):
        with pytest.raises(ValueError, match=r"it must be (a|one) SELECT|cannot be read"):
            read_transitions(path, query=query, **ROLES)
    assert path.read_bytes() == before
    with pytest.raises(ValueError, match="table= and query= both say"):
        read_transitions(path, table="log", query="SELECT 1", **ROLES)


@pytest.mark.parametrize("make", [sqlite, duck])
def test_a_query_reaches_nothing_else(tmp_path, make):
    path = make(tmp_path / "log.db")
    secret = tmp_path / "secret.csv"
    secret.write_text("maschine,datum,zustand,aktion,gewinn\n1,1,a,b,1\n")
    for query in (
        f"SELECT * FROM read_csv('{secret}')",
        f"SELECT * FROM '{secret}'",
        f"WITH x AS (SELECT readfile('{secret}')) SELECT * FROM x",
    ):
        with pytest.raises(ValueError, match="cannot be"):
            read_transitions(path, query=query, **ROLES)


def test_folder_names_with_keys_are_columns(tmp_path):
    for month in (1, 2):
        folder = tmp_path / "csv" / f"month={month}"
        folder.mkdir(parents=True)
        (folder / "a.csv").write_text(text(), encoding="utf-8")
    roles = ROLES | {"state": ["zustand", "month"], "episode": None, "step": None}
    roles["next_state"] = ["zustand", "month"]
    counts = read_transitions(tmp_path / "csv", **roles)
    assert len(counts.state_labels) == 6
    assert {label[1] for label in counts.state_labels} == {1, 2}
    duckdb.sql(
        f"COPY (SELECT * FROM read_csv('{tmp_path}/csv/*/a.csv', delim=';', decimal_separator=',', "
        f"thousands='.', hive_partitioning=true)) TO '{tmp_path}/parquet' "
        "(FORMAT parquet, PARTITION_BY month)"
    )
    again = read_transitions(tmp_path / "parquet", **roles)
    assert again.state_labels == counts.state_labels
    np.testing.assert_array_equal(again.count, counts.count)
