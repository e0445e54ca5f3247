from __future__ import annotations

import csv
import datetime
import gzip
import io
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.errors import UsageError
from judge.records import Record, read

from .conftest import ReadBack, Written
from .test_jsonl import problem_of


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_byte_order_mark_crlf_empty_cells_and_no_last_newline(items: ReadBack, name: str) -> None:
    text = '"ID",Story,Label\r\n1,,\r\n2,x,'
    text = text.replace(",", "\t") if name == "a.tsv" else text
    found = items(name, b"\xef\xbb\xbf" + text.encode())
    assert [item.fields for item in found] == [
        {"ID": "1", "Story": "", "Label": ""},
        {"ID": "2", "Story": "x", "Label": ""},
    ]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.parametrize(
    ("row", "says"),
    [
        (b"1,2", "has 2 cells, the header 3"),
        (b"1,2,3,4", "has 4 cells, the header 3"),
        (b"1,a\0b,3", "column 'story' holds a NUL byte"),
        (b"1,caf\xe9,3", "column 'story' is not UTF-8"),
    ],
)
def test_a_bad_row_is_named_and_the_next_is_read(
    items: ReadBack, name: str, row: bytes, says: str
) -> None:
    text = b"id,story,label\n0,x,y\n" + row + b"\n9,x,y\n"
    separator = b"," if name == "a.csv" else b"\t"
    found = items(name, text.replace(b",", separator))
    assert [item.line for item in found] == [2, 3, 4]
    assert says in problem_of(found[1])
    assert found[1].raw == row.replace(b",", separator).decode("utf-8", "backslashreplace")
    assert found[2].fields == {"id": "9", "story": "x", "label": "y"}


def test_an_open_quote_takes_no_more_rows_than_the_limit(items: ReadBack) -> None:
    found = items("a.csv", 'id,story\n1,"never closed\n' + "2,c\n" * 3000, max_line=1000)
    assert "more than the limit of 1000" in problem_of(found[0])
    assert len(found) > 2600
    assert {item.problem for item in found[1:]} == {None}


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (b"id,story,id", "names a column twice: id"),
        (b"id,caf\xe9", "cannot be read: a cell is not UTF-8: iconv -f ENCODING -t UTF-8 FILE"),
        ("ид,a".encode("utf-16-le"), "holds a NUL byte .*: iconv -f UTF-16LE -t UTF-8 FILE"),
        (b'id,"open', "header row cannot be read"),
        (b"id,story,,", "several columns have no name: name them, or delete them"),
        (b"id,story\r1,a\r2,b\r", r"a carriage return alone ends no line: .* tr '\\r' '\\n'"),
    ],
)
def test_a_header_that_names_no_columns_is_refused(
    write: Written, header: bytes, says: str
) -> None:
    path = write("a.csv", header + b"\n1,2,3\n")
    with pytest.raises(UsageError, match=says):
        read(path)


def test_columns_may_be_separated_by_semicolons(items: ReadBack) -> None:
    """As spreadsheets write them in locales with a decimal comma."""
    found = items("a.csv", b'id;"a; b";c\n1;"x; y";0,5\n2;z\n')
    assert found[0].fields == {"id": "1", "a; b": "x; y", "c": "0,5"}
    assert found[1].problem and "has 2 cells, the header 3" in found[1].problem.message


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_first_rows_tell_what_separates_the_cells(
    items: ReadBack, name: str, mark: str
) -> None:
    rows = [["id", "mail, or note"], ["1", "Hi, Bo | you"], ["2", "a;b\tc"]]
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=mark).writerows(rows)
    assert [[*item.fields.values()] for item in items(name, out.getvalue())] == rows[1:]


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_the_header_tells_the_separator_where_all_rows_hold_one_comma(
    items: ReadBack, mark: str
) -> None:
    rows = [["id", "mail", "score"], ["1", "Thanks", "2,5"], ["2", "Do it", "3,5"]]
    found = items("a.csv", "".join(mark.join(row) + "\n" for row in rows))
    assert [[*item.fields.values()] for item in found] == rows[1:]


@pytest.mark.parametrize("mark", [";", ",", "§"])
def test_a_line_before_the_header_names_the_separator(items: ReadBack, mark: str) -> None:
    found = items("a.csv", f"sep={mark}\r\n\r\nid{mark}a|b\r\n1{mark}x|y\r\n")
    assert [(item.line, item.fields) for item in found] == [(4, {"id": "1", "a|b": "x|y"})]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Export of May\nid,mail\n1,x\n", "first line has one cell, the lines below have 2"),
        ("Mails; all\nid,mail\n1,x\n2,y\n", "first line has one cell, the lines below have 2"),
        ("mail\nDear Ann, hi\nDear Bo, hi\n", "or quote cells that hold ','"),
        ("Export of May,,\nid,mail,n\n1,x,2\n", "delete the lines above the header"),
        ("a;b,c;d\n1;2,3;4\n", "write sep=; or sep=, on a line above"),
    ],
)
def test_a_table_that_may_be_read_in_two_ways_is_refused(
    write: Written, text: str, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        read(write("a.csv", text))


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.xlsx"])
def test_a_blank_row_is_no_record_wherever_it_stands(items: ReadBack, name: str) -> None:
    cells: list[list[str]] = [[""], ["", "", ""], ["id", "mail", "n"], ["", " ", ""], ["1", "", ""]]
    cells += [["", "", "", ""], ["", "x", ""], [" "], ["", "", "\xa0"]]
    mark = "," if name == "a.csv" else "\t"
    text: str | bytes = "\n".join(map(mark.join, cells)) + "\n"
    found = items(name, workbook(a=[*cells]) if name == "a.xlsx" else text)
    told = [(item.line, [v or "" for v in item.fields.values()]) for item in found]
    assert told == [(5, ["1", "", ""]), (7, ["", "x", ""])]
    assert not items("b.csv", 'mail\n\n""\n" "\n')


def workbook(**sheets: list[list[object]]) -> bytes:
    openpyxl = pytest.importorskip("openpyxl")
    book, out = openpyxl.Workbook(), io.BytesIO()
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(out)
    return out.getvalue()


def test_an_excel_workbook(items: ReadBack) -> None:
    day = datetime.datetime(2026, 11, 25)
    rows = [
        [],
        ["id", "mail", "n"],
        [1, "Hi", 1.5],
        [],
        ["b_x000D_\nc _x005F_x0041_", None, True],
        ["c", day, None, " ", "\xa0"],
        [1, 2, 3, 4],
    ]
    found = items("a.xlsx", workbook(empty=[], mails=rows))
    assert [(item.line, item.fields) for item in found] == [
        (3, {"id": 1, "mail": "Hi", "n": 1.5}),
        (5, {"id": "b\r\nc _x0041_", "mail": None, "n": True}),  # As Excel saves and shows it.
        (6, {"id": "c", "mail": "2026-11-25T00:00:00", "n": None}),
        (7, {}),
    ]
    assert problem_of(found[3]) == "the row has 4 cells, the header 3"
    packed = io.BytesIO(gzip.compress(workbook(mails=rows)))
    assert next(iter(read("-", stdin=packed))).fields == found[0].fields


@pytest.mark.parametrize(
    ("sheets", "says"),
    [
        ({"a": [["id"], [1]], "b": [["id"], [2]]}, "name one, such as '[^' ]*a.xlsx#a'"),
        (
            {"a": [["Mails of May"], ["id", "mail"], [1, "x"]]},
            "delete the lines above the header",
        ),
        ({"a": [["id", "id"], [1, 2]]}, "names a column twice"),
    ],
)
def test_a_workbook_of_which_the_rows_cannot_be_told_is_refused(
    write: Written, sheets: dict[str, list[list[object]]], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        read(write("a.xlsx", workbook(**sheets)))
    with pytest.raises(UsageError, match="is not an Excel workbook"):
        read(write("b.xlsx", "id,mail\n"))


def test_the_rows_before_the_damage_of_a_workbook_are_read(items: ReadBack, write: Written) -> None:
    whole = zipfile.ZipFile(io.BytesIO(workbook(a=[["id", "mail"], [1, "Hi"], [2, "Ho"]])))

    def damaged(part: str, end: int) -> bytes:
        """The workbook with only the characters of this part up to `end`."""
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as packed:
            for name in whole.namelist():
                text = whole.read(name)
                packed.writestr(name, text[:end] if name.endswith(part) else text)
        return out.getvalue()

    sheet = next(n for n in whole.namelist() if b'<row r="3"' in whole.read(n))
    first, rest = items("a.xlsx", damaged(sheet, whole.read(sheet).index(b'<row r="3"') + 9))
    assert first.fields == {"id": 1, "mail": "Hi"} and rest.problem is not None
    assert rest.problem.message.startswith("the workbook is damaged (")
    with pytest.raises(UsageError, match="is not an Excel workbook"):
        read(write("b.xlsx", damaged("workbook.xml", 80)))


def test_a_sheet_of_a_workbook_is_named(write: Written) -> None:
    book = workbook(**{"Notes": [["x"], [0]], "May 2": [["id", "mail"], [7, "Hi"]]})
    path = write("a.xlsx", book)
    (record,) = read(f"{path}#May 2")
    assert (record.fields, record.line, record.source) == (
        {"id": 7, "mail": "Hi"},
        2,
        "a.xlsx#May 2",
    )
    with pytest.raises(UsageError, match="has no sheet 'June'; sheets with rows: Notes, May 2"):
        read(f"{path}#June")
    write("a.xlsx#May 2.csv", "id\n8\n")
    assert next(read(f"{path}#May 2.csv")).fields == {"id": "8"}  # a file of that name comes first
    sheets = {"Notes": [["x"], [0]], "E\u0301te\u0301": [["y"], [1]]}
    other = write("b.xlsx", workbook(**sheets))
    assert next(read(f"{other}#\u00c9t\u00e9")).fields == {"y": 1}


@pytest.mark.slow
def test_a_workbook_that_unpacks_without_end_is_refused(write: Written) -> None:
    path = write("a.xlsx", workbook(a=[["id"], [1]]))
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as packed,
        packed.open("xl/sharedStrings2.xml", "w", force_zip64=True) as part,
    ):
        for _ in range(1100):
            part.write(b"x" * (1 << 20))
    assert path.stat().st_size < 6_000_000
    with pytest.raises(UsageError, match="bytes unpacked: save it as"):
        read(path)


def test_cali_quotes_are_text(items: ReadBack) -> None:
    row = '"Yes," she said.\tShe "spoke\t[\'E\']\t[]'
    (found,) = items("data.tsv", f"premise\thypothesis\tus_ratings\tin_ratings\n{row}\n")
    assert "\t".join(found.fields.values()) == row


def test_quoted_cells_of_other_tsv_files_are_unquoted(items: ReadBack) -> None:
    text = 'id\tstory\tnote\n1\t"first\r\n\nsaid ""no"" twice"\t"x\ny"\r\n2\ta "b\t""\n'
    found = items("a.tsv", text)
    assert [(item.line, item.fields) for item in found] == [
        (2, {"id": "1", "story": 'first\r\n\nsaid "no" twice', "note": "x\ny"}),
        (6, {"id": "2", "story": 'a "b', "note": ""}),
    ]


@pytest.mark.parametrize(
    "rows",
    [
        ['"Well\tfoo', 'bar"\tbaz'],
        ['a\t"foo', "b\tbar", 'c"\td'],
        ['"a\t"b', "c\td"],
        ['a\t"last one open'],
    ],
)
def test_a_stray_quote_in_a_tsv_joins_no_rows_silently(items: ReadBack, rows: list[str]) -> None:
    found = items("a.tsv", "\n".join(["x\ty", *rows, ""]))
    assert "quote" in problem_of(found[0]) or "not CSV" in problem_of(found[0])
    assert as_written(found, "\t") == "\n".join(rows)


def as_written(found: list[Record], mark: str) -> str:
    """The text of rows without quotes, or of unreadable ones."""
    return "\n".join(
        mark.join(item.fields.values()) if item.raw is None else item.raw for item in found
    )


@pytest.mark.parametrize("mark", [",", "\t", ";"])
@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (["3,Al", '1,"Hello', "2,Fine", "3,ok"], "opened on line 3 is never closed: the rest"),
        (['1,"Hi', 'Bo","open', "2,Fine,3"], "opened on line 3 is never closed: the rest"),
        (['1,"Hello', "2,Fine", '3,"Hi, Bo"'], "opened on line 2 runs to line 4: text follows"),
        (
            ['1,"a', 'b","c""', "d", '2,""', '3,"e"'],
            "opened on line 3 runs to line 6: text follows",
        ),
        (['1,"Hello, Bo', "2,Fine", '3,said hi"'], "joins lines 2 to 4, each a row: remove it"),
        (['m9,"Hello', 'm10,said hi"'], "joins lines 2 to 3, each a row"),
        (['"Hello,1', 'Hi",2'], "joins lines 2 to 3, each a row"),
        (['1,"Hello', 'Bo, hi",c,d,e'], "quote joins lines 2 to 3"),
        (['1,"She said "hi"."'], 'closing quote: write a quote within a quoted cell twice ("")'),
    ],
)
def test_an_open_quote_is_named_with_its_line(
    items: ReadBack, mark: str, rows: list[str], says: str
) -> None:
    form = "a.tsv" if mark == "\t" else "a.csv"
    found = items(form, "".join(f"{row}\n".replace(",", mark) for row in ["id,mail", *rows]))
    bad = next(item for item in found if item.problem)
    assert says in problem_of(bad)
    assert as_written(found, mark) == "\n".join(rows).replace(",", mark)


@pytest.mark.parametrize(
    "cell",
    [
        "Dear Bo,\n\nthanks, and bye,\nAnn",
        "1. milk, fresh\n2. eggs, six",
        "Total\n10,5",
        "f(x):\ng(x,y)\nh(y,x)",
        "Sort:\nid,name\n1,Bo\n2,Ann",
        "2\n3",
        'He said: "7,\n8,"',
        "line, one\n" * 20_000,
    ],
)
def test_a_cell_may_have_many_lines(items: ReadBack, cell: str) -> None:
    out = io.StringIO(newline="")
    csv.writer(out).writerows([["id", "mail"], ["1", cell], ["2", "x"]])
    assert [item.fields for item in items("a.csv", out.getvalue())] == [
        {"id": "1", "mail": cell},
        {"id": "2", "mail": "x"},
    ]


def test_a_program_in_a_cell_of_a_tsv_is_one_cell(items: ReadBack) -> None:
    code = 'func main() {\n\tprintln("hi")\n\tif x {\n\t\treturn\n\t}\n}'
    out = io.StringIO(newline="")
    csv.writer(out, delimiter="\t").writerows([["id", "text"], ["1", code], ["2", "x"]])
    assert [item.fields["text"] for item in items("a.tsv", out.getvalue())] == [code, "x"]


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_a_comma_beside_another_mark_is_refused_if_either_may_separate(
    items: ReadBack, mark: str
) -> None:
    rows = [f"id{mark}Text, frei", f"k1{mark}Ja, gern", f"k2{mark}Nein, danke", ""]
    with pytest.raises(UsageError, match="may separate the cells"):
        items("de.csv", "\n".join(rows))
    quoted = [f'id{mark}"Text, frei"', f'k1{mark}"Ja, gern"', ""]
    assert items("de.csv", "\n".join(quoted))[0].fields == {"id": "k1", "Text, frei": "Ja, gern"}
    inside = [f'id,"Text{mark} frei"', f'k1,"Ja{mark} gern"', ""]
    field = {"id": "k1", f"Text{mark} frei": f"Ja{mark} gern"}
    assert items("de.csv", "\n".join(inside))[0].fields == field


CELL = st.text(alphabet="ab\",'\n é", max_size=8)


ROW = st.lists(CELL, min_size=3, max_size=3).filter(lambda cells: bool("".join(cells).strip()))


@given(st.lists(ROW, max_size=5))
def test_what_the_csv_module_writes_comes_back(rows: list[list[str]]) -> None:
    out = io.StringIO(newline="")
    csv.writer(out).writerows([["a", "b", "c"], *rows])
    found = read("-", stdin=io.BytesIO(out.getvalue().encode()), format="csv")
    assert [list(item.fields.values()) for item in found] == rows


def test_of_a_row_over_the_limit_the_beginning_is_kept(items: ReadBack) -> None:
    rows = 'id,story\n1,"' + "line\n" * 4000 + '"\n2,b\n'
    long = items("a.csv", rows, max_line=9000)[0]
    assert long.raw is not None and long.raw.startswith('1,"line\nline\n')
    assert long.raw.endswith(" bytes in all]") and len(long.raw) < 2_100


def test_rows_before_a_cut_and_where_it_is(items: ReadBack) -> None:
    rows = "id,story\n" + "".join(f'{n},"a\nb"\n' for n in range(3000))
    packed = gzip.compress(rows.encode())
    found = items("a.csv.gz", packed[: len(packed) * 2 // 3])
    assert [item.line for item in found[:-1]] == list(range(2, 2 * len(found), 2))
    assert 2 <= found[-1].line - found[-2].line <= 3
    assert "stream is cut off" in problem_of(found[-1])
