"""Checks pgcli in a terminal: completion of names, special commands, cursor."""

import os
import sys
from pathlib import Path

import pexpect
from tap import DATABASE, HOST, PORT, TAILGATE, USER, check, done

PGCLI = str(Path(sys.executable).with_name("pgcli"))
os.environ |= {"XDG_CONFIG_HOME": os.environ["CHECKS_FOLDER"], "PAGER": "cat", "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}


def start():
    words = ["-h", HOST, "-p", PORT, "-U", USER, DATABASE, "--less-chatty", "--warn", "off", "--prompt", "ready> "]
    typing = pexpect.spawn(PGCLI, words, encoding="utf-8", timeout=10, dimensions=(60, 180))
    typing.expect("ready>")
    return typing


terminal = None
with check("starts"):
    terminal = start()


def expect_output(command, *expected):
    terminal.send(command + "\r")
    for each in expected:
        terminal.expect_exact(each)
    terminal.expect("ready>")


for statement, answers in (
    ("SELECT id, customer FROM orders WHERE id = 5;", ("customer 5", "SELECT 1")),
    ("SELECT * FROM kinds ORDER BY id;", ("häßlich", "SELECT 4")),
    ("\\d orders", ("placed", "timestamp with time zone", "orders_pkey")),
    ("\\d per_customer", ("customer", "orders", "amount")),
    ("\\d+ large_orders", ("customer",)),
    ("\\dt", ("kinds", "orders", "written")),
    ("\\dv", ("large_orders",)),
    ("\\dm", ("per_customer",)),
    ("\\di", ("orders_customer",)),
    ("\\dn", ("annex", "public")),
    ("\\df doubled", ("doubled",)),
    ("\\du", ("postgres",)),
    ("\\l", ("shop",)),
    ("\\dT", ("SELECT",)),
    ("\\dp orders", ("orders",)),
    ("\\dx", ("plpgsql",)),
    ("\\dx+ plpgsql", ("plpgsql",)),
    ("\\sf doubled", ("doubled",)),
    ("\\conninfo", ("shop",)),
    ("SELECT nosuch FROM orders;", ('column "nosuch" does not exist',)),
    ("BEGIN;", ("BEGIN",)),
    ("ROLLBACK;", ("ROLLBACK",)),
    ("SHOW TimeZone;", ("UTC",)),
):
    with check(statement):
        if terminal is None or not terminal.isalive():
            terminal = start()
        expect_output(statement, *answers)
with check("completion of tables and columns"):
    terminal = start()
    terminal.expect(pexpect.TIMEOUT, timeout=3)  # it reads the catalog in the background
    terminal.send("SELECT * FROM large_")
    terminal.send("\t")
    terminal.expect("(?s)large.{0,3}orders|orders.{0,60}view")
with check("\\watch"):
    terminal = start()
    terminal.send("SELECT 40 + 2 AS answer \\watch 1\r")
    for _ in range(2):
        terminal.expect(r"\|\s*42\s*\|")
    terminal.sendintr()
    terminal.expect("ready>")
with check("\\q"):
    terminal = start()
    terminal.send("\\q\r")
    terminal.expect(pexpect.EOF)
if TAILGATE:
    with check("a materialized view, asked twice, is fresh"):
        terminal = start()
        expect_output("INSERT INTO orders VALUES (5010, 'pgcli', 7, now(), true);", "INSERT 0 1")
        expect_output("SELECT orders FROM per_customer WHERE customer = 'pgcli';", "SELECT 1")
        expect_output("DELETE FROM orders WHERE id = 5010;", "DELETE 1")
        terminal.send("\\q\r")
        terminal.expect(pexpect.EOF)
done()
