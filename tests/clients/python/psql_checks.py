"""Checks psql: every describing command, \\watch, \\copy, tab completion, scripts.

A describing command must print the same as for PostgreSQL, the server at CONTROL_PORT. `OURS`
lists the lines that may differ: objects that only Tailgate has, and settings of a PostgreSQL on
disk.
"""

import os
import re
import subprocess
import tempfile
from pathlib import Path

import pexpect
from tap import HOST, PORT, TAILGATE, check, done

CONTROL = os.environ["CONTROL_PORT"]
DESCRIBING = """
\\d | \\dS | \\d+ | \\dS+ | \\d kinds | \\d+ kinds | \\d orders
\\d+ orders | \\d written | \\d large_orders | \\d per_customer | \\d orders_pkey
\\d+ orders_customer | \\d annex.notes | \\d annex.* | \\d pg_class
\\d+ pg_class | \\d pg_catalog.pg_tables | \\d information_schema.tables
\\d nosuch | \\d ord* | \\da | \\daS | \\da+ sum | \\dA | \\dA+
\\dAc | \\dAc+ | \\dAf | \\dAf+ | \\dAo | \\dAo+ btree | \\dAp | \\dAp+ btree
\\db | \\db+ | \\dc | \\dcS | \\dcS+ | \\dC | \\dC+ | \\dconfig
\\dconfig+ | \\dconfig work_mem | \\dconfig * | \\dd | \\ddS | \\dD | \\dDS
\\dD+ | \\ddp | \\dE | \\dE+ | \\des | \\des+ | \\det | \\det+
\\deu | \\deu+ | \\dew | \\dew+ | \\df | \\df+ | \\dfn | \\dfa | \\dft | \\dfw
\\dfp | \\df doubled | \\dfS abs | \\dfS+ lower | \\dfS | \\dF
\\dF+ | \\dFd | \\dFd+ | \\dFp | \\dFp+ | \\dFt | \\dFt+ | \\dg | \\dg+ | \\dgS
\\di | \\di+ | \\diS | \\dl | \\dl+ | \\dL | \\dLS | \\dL+ | \\dm
\\dm+ | \\dmS | \\dn | \\dn+ | \\dnS | \\dnS+ | \\do | \\doS | \\doS+ | \\do =
\\dO | \\dOS | \\dO+ | \\dp | \\dp orders | \\dpS | \\dP | \\dP+
\\dPn | \\dPt | \\dPi | \\drds | \\dRp | \\dRp+ | \\dRs | \\dRs+ | \\ds | \\ds+
\\dt | \\dt+ | \\dtS | \\dtS+ | \\dt annex.* | \\dt *.* | \\dtvm
\\dT | \\dTS | \\dT+ | \\dTS+ | \\dT text | \\du | \\du+ | \\duS | \\dv | \\dv+
\\dvS | \\dx | \\dx+ | \\dX | \\dX large* | \\dy | \\dy+ | \\l | \\l+ | \\l shop | \\lo_list | \\lo_list+ | \\sf doubled | \\sf+ doubled
\\sf abs(integer) | \\sv large_orders | \\sv+ large_orders | \\z | \\z orders | \\zS | \\conninfo | \\encoding
"""
# Lines that are dropped from both outputs, by command; the first entry is for all commands: row
# counts, a materialized view's relation of errors and its key, and the schema tailgate.
OURS = {
    "": r"per_customer_(errors|key)|^\(\d+ rows?\)$|^tailgate \|",
    r"\\d\+? per_customer": r"^Indexes:$",
    r"\\dt \*\.\*": r"^pg_toast ",
    r"\\dnS?\+": r"^\| \| =U/tailgate \|",
    r"\\l\+?": r"^(postgres|template[01]) |^\|",
}
# Commands whose rows differ, with the reason. They must run, with the same title and headings.
DIFFERENT = {
    r"\\d[af]S": "defaults of arguments, and ORDER BY among them, of PostgreSQL's own functions are not told",
    r"\\dfS\+ lower": "nor their source",
    r"\\dAf\+?": "types of an operator family are in another order",
    r"\\dA[op]\+?.*": "operators and functions of operator families are not listed",
    r"\\dconfig(\+| \*)?": "settings of a server with files of its own",
    r"\\dFp?\+": "there is no text search",
    r"\\dL\+": "functions of a language are told by their oids",
    r"\\doS\+": "two functions of operators are not told with their schema",
    r"\\dx\+": "what belongs to an extension is not told",
    r"\\s[fv]\+? .*": "definitions are as they were typed",
}


def psql(*commands, port=PORT, stdin=None, options=()):
    words = ["psql", "-X", "-h", HOST, "-p", port, *options]
    for command in commands:
        words += ["-c", command]
    run = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False, input=stdin)
    return run.stdout, run.stderr


def described(command, port):
    lines = []
    for line in "".join(psql(command, port=port)).replace(port, "PORT").splitlines():
        line = re.sub(r"\b\d+ (bytes|kB|MB)", "SIZE", re.sub(r" +", " ", line)).strip()
        left_out = any(re.search(words, line) for of, words in OURS.items() if words and (not of or re.fullmatch(of, command)))
        if not left_out and not re.fullmatch(r"[-+ ]*", line):
            lines.append(line)
    return lines


for word in re.split(r"[|\n]", DESCRIBING):
    if word := word.strip():
        with check(word):
            actual, expected = described(word, PORT), described(word, CONTROL)
            assert not any("ERROR" in line for line in actual), actual
            if any(re.fullmatch(of, word) for of in DIFFERENT):
                assert word[1] == "s" or actual[:2] == expected[:2], (actual[:2], expected[:2])
                continue
            different = [line for line in actual if line not in expected], [line for line in expected if line not in actual]
            message = f"{len(different[0])} lines more: {different[0][:2]}, {len(different[1])} missing: {different[1][:2]}"
            assert sorted(actual) == sorted(expected), message
with check("\\copy out and in, csv with a header"), tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "orders.csv"
    out, _ = psql(f"\\copy (SELECT id, customer FROM orders WHERE id <= 3 ORDER BY id) TO '{path}' WITH (FORMAT csv, HEADER)")
    assert out == "COPY 3\n"
    assert path.read_text() == "id,customer\n1,customer 1\n2,customer 2\n3,customer 3\n"
    path.write_text('psql,1,"one, ""two"""\npsql,2,\n')
    assert psql(f"\\copy written FROM '{path}' WITH (FORMAT csv)")[0] == "COPY 2\n"
    assert psql("SELECT n, note FROM written WHERE client = 'psql' ORDER BY n", options=["-At"])[0] == '1|one, "two"\n2|\n'
    assert psql("DELETE FROM written WHERE client = 'psql'")[0] == "DELETE 2\n"
with check("\\copy of a table, text and binary"), tempfile.TemporaryDirectory() as folder:
    for form in ("text", "binary"):
        path = Path(folder) / form
        assert psql(f"\\copy orders TO '{path}' WITH (FORMAT {form})")[0] == "COPY 1000\n"
    assert (Path(folder) / "binary").read_bytes().startswith(b"PGCOPY\n")
with check("\\copy that fails tells the value"):
    output = psql(stdin="\\copy written from stdin\npsql\t1\ta\npsql\tx\tb\n\\.\n")[1]
    assert 'invalid input syntax for type integer: "x"' in output, output
with check("COPY FROM STDIN in a script"):
    output = psql(
        stdin="BEGIN;\nCOPY written FROM STDIN;\npsql\t1\tone\n\\.\nSELECT count(*) FROM written WHERE client = 'psql';\nROLLBACK;\n",
        options=["-At"],
    )
    assert output == ("BEGIN\nCOPY 1\n1\nROLLBACK\n", ""), output
with check("\\watch"):
    watching = pexpect.spawn("psql", ["-X", "-h", HOST, "-p", PORT], encoding="utf-8", timeout=20, dimensions=(40, 200))
    watching.sendline("SELECT count(*) AS watched FROM orders \\watch 0.2")
    for _ in range(3):
        watching.expect("watched.*1000")
    watching.sendintr()
    watching.expect("=[#>] ")
    watching.sendline("\\q")
    watching.expect(pexpect.EOF)
with check("tab completion"):
    typing = pexpect.spawn("psql", ["-X", "-h", HOST, "-p", PORT, "--no-readline"][:5], encoding="utf-8", timeout=20, dimensions=(40, 200))
    typing.expect("=[#>] ")
    for prefix, completed in (
        ("SELECT * FROM large_o", "large_orders "), ("SELECT * FROM orders WHERE cust", "customer "), ("\\d larg", "large_orders"),
        ("SELECT * FROM annex.", "annex.notes"), ("SET search_pa", "search_path "),
        ("UPDATE writ", "written"), ("INSERT INTO kin", "kinds"), ("\\df dou", "doubled"), ("SET ROLE post", "postgres"), ("\\dn ann", "annex"),
        ("SHOW client_enc", "client_encoding"),
    ):  # fmt: skip
        typing.send(prefix + "\t")
        typing.expect_exact(completed)
        typing.sendcontrol("u")
    typing.sendline("")
    typing.sendline("\\q")
    typing.expect(pexpect.EOF)
with check("Ctrl-C cancels a statement"):
    typing = pexpect.spawn("psql", ["-X", "-h", HOST, "-p", PORT], encoding="utf-8", timeout=20)
    typing.sendline("SELECT count(*) FROM orders a, orders b, orders c, orders d WHERE a.id + b.id = c.id * d.id;")
    typing.expect_exact("d.id;")
    typing.expect(pexpect.TIMEOUT, timeout=1)
    typing.sendintr()
    typing.expect("canceling statement due to user request")
    typing.sendline("\\q")
    typing.expect(pexpect.EOF)
with check("\\gdesc, \\gset, \\gexec, \\crosstabview, \\bind"):
    output = psql(
        stdin="SELECT id, amount FROM orders \\gdesc\nSELECT 5 AS five \\gset\n\\echo :five\nSELECT 'SELECT 6' \\gexec\n"
        "SELECT customer, paid, count(*) FROM orders WHERE id < 6 GROUP BY 1, 2 ORDER BY 1 \\crosstabview\n",
        options=["-At"],
    )
    assert output[0].startswith("id|bigint\namount|numeric(10,2)\n5\n6\n"), output
with check("\\x, \\pset, \\t, \\o, formats"):
    assert psql("\\x", "SELECT 1 AS a")[0] == "Expanded display is on.\n-[ RECORD 1 ]\na | 1\n\n"
    assert psql("SELECT 1 AS a, NULL AS b", options=["--csv"])[0] == "a,b\n1,\n"
    assert psql("SELECT 1 AS a", options=["-H"])[0].startswith("<table")
with check("FETCH_COUNT: a cursor behind a SELECT"):
    assert psql(stdin="\\set FETCH_COUNT 100\nSELECT id FROM orders;\n", options=["-At"])[0].count("\n") == 1000
with check("errors: LINE, caret, detail, ON_ERROR_STOP, \\errverbose"):
    assert (
        psql("SELECT nosuch FROM orders")[1]
        == 'ERROR:  column "nosuch" does not exist\nLINE 1: SELECT nosuch FROM orders\n               ^\n'
    )
    assert "DETAIL:  Key (id)=(1) already exists." in psql("INSERT INTO orders VALUES (1, 'x', 1, now(), true)")[1]
    run = subprocess.run(["psql", "-X", "-h", HOST, "-p", PORT, "-v", "ON_ERROR_STOP=1"], input="SELECT 1/0;\nSELECT 2;\n", capture_output=True, text=True)  # fmt: skip
    assert (run.returncode, run.stdout) == (3, "")
    assert "22012" in psql(stdin="SELECT 1/0;\n\\errverbose\n")[1]
with check("-1: one transaction"):
    psql("INSERT INTO written VALUES ('psql', 1, 'gone')", "SELECT 1/0", options=["-1"])
    assert psql("SELECT count(*) FROM written WHERE client = 'psql'", options=["-At"])[0] == "0\n"
with check("-l, --list of databases"):
    assert " shop " in psql(options=["-l", "-d", "shop"])[0]
with check("\\c to the same database, as another session"):
    assert "You are now connected" in psql(stdin="\\c\n")[0]
with check("pg_dump-like commands of \\set ECHO_HIDDEN"):
    assert "FROM pg_catalog.pg_class" in psql("\\dt", options=["-E"])[0]
if TAILGATE:
    with check("COPY (TAIL …) as it happens"):
        following = pexpect.spawn("psql", ["-X", "-h", HOST, "-p", PORT, "-c", "COPY (TAIL per_customer WITH (SNAPSHOT = false)) TO STDOUT"], encoding="utf-8", timeout=20)  # fmt: skip
        following.expect(pexpect.TIMEOUT, timeout=0.5)
        psql("INSERT INTO orders VALUES (5009, 'followed', 7, now(), true)")
        following.expect("1\tfollowed\t1")
        psql("DELETE FROM orders WHERE id = 5009")
        following.expect("-1\tfollowed\t1")
        following.sendintr()
        following.expect(pexpect.EOF)
done()
