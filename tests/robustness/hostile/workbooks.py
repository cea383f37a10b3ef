"""Excel workbooks: empty cells without end, entities, tags made to be slow."""

import zipfile

from robustness.hostile.base import CANARY, Case, archive

NS = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
STRINGS = "xl/sharedStrings.xml"
SHARED = (
    b'<Override PartName="/xl/sharedStrings.xml" ContentType="application/vnd.openxmlformats-'
    b'officedocument.spreadsheetml.sharedStrings+xml"/>'
)
CELL = '<c t="inlineStr"><is><t>%s</t></is></c>'
HEAD = "<row>" + CELL % "id" + CELL % "a" + "</row>"


def book(**parts):
    """Make a workbook; a part is text, or (start, piece, times, end), put in place of its member.

    Keys are the ends of member names, with _ for a dot.
    """

    def make(folder, outside):
        import openpyxl

        plain = openpyxl.Workbook()
        plain.active.append(["id", "a"])
        plain.active.append(["p", 1])
        plain.save(folder / "plain.xlsx")
        (outside / "secret.txt").write_text(CANARY)
        made = {}
        with zipfile.ZipFile(folder / "plain.xlsx") as old:
            for entry in old.infolist():
                key = entry.filename.rsplit("/", 1)[-1].replace(".", "_").strip("_")
                made[entry.filename] = _member(parts.get(key, old.read(entry)), outside)
        if "sharedStrings_xml" in parts:
            # openpyxl writes texts into their cells; other programs share them.
            made[STRINGS] = _member(parts["sharedStrings_xml"], outside)
            kinds = made["[Content_Types].xml"][0].replace(b"</Types>", SHARED + b"</Types>")
            made["[Content_Types].xml"] = (kinds, b"", 0, b"")
        (folder / "plain.xlsx").unlink()
        return archive(folder / "f.xlsx", made)

    return make


def _member(given, outside):
    start, piece, times, end = given if isinstance(given, tuple) else (given, "", 0, "")
    return _bytes(start, outside), _bytes(piece, outside), times, _bytes(end, outside)


def _bytes(text, outside):
    if isinstance(text, bytes):
        return text
    return text.replace("OUTSIDE", (outside / "secret.txt").as_posix()).encode()


def sheet(piece, times, head=HEAD, before="<sheetData>", after="</sheetData>", end=""):
    return book(
        sheet1_xml=(f"<worksheet {NS}>{before}{head}", piece, times, f"{after}{end}</worksheet>")
    )


LAUGHS = '<!DOCTYPE w [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY a{i} "{f"&a{i - 1 if i else str()};" * 10}">' for i in range(10)
) + "]>"  # fmt: skip
XXE = '<!DOCTYPE w [<!ENTITY x SYSTEM "file://OUTSIDE">]>'
BODY = f"<worksheet {NS}><sheetData>{HEAD}<row>{CELL % '&x;'}<c><v>1</v></c></row></sheetData></worksheet>"
COMMENT = "<!--" + " " * 10_000 + "-->"
DECLARED = '<?xml version="1.0"?>'

CASES = {
    "empty cells in one row": Case(sheet("<c/>" * 50_000, 400, HEAD + "<row>", after="</row></sheetData>")),
    "empty cells in rows": Case(sheet("<row>" + "<c/>" * 5000 + "</row>", 4000)),
    "empty rows": Case(sheet("<row/>" * 50_000, 1000)),
    "empty cells, 83 KB": Case(sheet("<row>" + "<c/>" * 1000 + "</row>", 5000), options={"max_bytes": None}),
    "cells far to the right": Case(sheet('<row><c r="ZZZ1"><v>1</v></c></row>' * 1000, 200)),
    "a row far below": Case(sheet('<row r="2000000000"><c><v>1</v></c></row>', 1)),
    "rows far below one another": Case(
        book(sheet1_xml=f"<worksheet {NS}><sheetData>{HEAD}"
             + "".join(f'<row r="{i * 1_000_000}"><c><v>1</v></c></row>' for i in range(1, 3000))
             + "</sheetData></worksheet>")
    ),
    "texts in cells": Case(sheet(("<row>" + CELL % "x" * 2 + "</row>") * 1000, 1000)),
    "merged cells": Case(sheet('<mergeCell ref="A1:B2"/>' * 1000, 2000, before="<sheetData>" + HEAD + "</sheetData><mergeCells>", head="", after="</mergeCells>")),
    "conditional formats": Case(sheet('<conditionalFormatting sqref="A1"><cfRule type="expression" priority="1"/></conditionalFormatting>' * 1000, 1000, before="<sheetData>" + HEAD + "</sheetData>", head="", after="")),
    "deep tags": Case(sheet("<a>" * 1000, 2000, after="</a>" * 10)),
    "deep tags, closed": Case(sheet("<a>" * 100_000, 1, after="</a>" * 100_000 + "</sheetData>")),
    "one tag of attributes": Case(sheet(" ".join(f'k{i}="v"' for i in range(100_000)), 1, head=HEAD + "<row ", after="/></sheetData>"), read=True),
    "one long attribute": Case(sheet("x" * (1 << 20), 300, head=HEAD + '<row r="', after='"/></sheetData>')),
    "one long text": Case(sheet("x" * (1 << 20), 300, head=HEAD + "<row><c t=\"inlineStr\"><is><t>", after="</t></is></c></row></sheetData>")),
    "spaces": Case(book(sheet1_xml=("", " " * (1 << 20), 1500, ""))),
    "shared texts": Case(book(sharedStrings_xml=(f"<sst {NS}>", "<si><t>x</t></si>" * 1000, 3000, "</sst>"))),
    "formats": Case(book(styles_xml=(f"<styleSheet {NS}><cellXfs>", '<xf numFmtId="0"/>' * 1000, 3000, "</cellXfs></styleSheet>"))),
    "names of ranges": Case(book(workbook_xml=(f"<workbook {NS}><definedNames>", '<definedName name="a">x</definedName>' * 1000, 2000, "</definedNames></workbook>"))),
    "laughs": Case(book(sheet1_xml=DECLARED + LAUGHS + BODY.replace("&x;", "&a9;"))),
    "laughs behind a comment": Case(book(sheet1_xml=DECLARED + COMMENT + LAUGHS + BODY.replace("&x;", "&a9;"))),
    "laughs behind a long comment": Case(book(sheet1_xml=(DECLARED + "<!--", " " * (1 << 20), 30, "-->" + LAUGHS + BODY.replace("&x;", "&a9;")))),
    "laughs in UTF-16": Case(book(sheet1_xml=('<?xml version="1.0" encoding="UTF-16"?>' + LAUGHS + BODY.replace("&x;", "&a9;")).encode("utf-16"))),
    "laughs in texts": Case(book(sharedStrings_xml=DECLARED + LAUGHS + f"<sst {NS}><si><t>&a9;</t></si></sst>")),
    "laughs in formats": Case(book(styles_xml=DECLARED + LAUGHS + f"<styleSheet {NS}/>")),
    "a file as entity": Case(book(sheet1_xml=DECLARED + XXE + BODY)),
    "a file as entity behind a comment": Case(book(sheet1_xml=DECLARED + COMMENT + XXE + BODY)),
    "a file as entity in texts": Case(book(sharedStrings_xml=DECLARED + XXE + f"<sst {NS}><si><t>&x;</t></si><si><t>a</t></si><si><t>p</t></si></sst>")),
    "a file as entity in UTF-7": Case(book(sheet1_xml=b'<?xml version="1.0" encoding="UTF-7"?>' + (XXE + BODY).replace("<", "+ADw-").encode())),
    "escape codes": Case(sheet(CELL % "x", 1, head="<row>" + CELL % "id" + CELL % "a_x001B_[2J&#x202e;" + "</row><row>", after="<c><v>1</v></c></row></sheetData>")),
    "samples of empty cells": Case(sheet("<row>" + "<c/>" * 5000 + "</row>", 4000), "text"),
}  # fmt: skip
