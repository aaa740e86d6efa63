"""Checks Apache Superset: a database, a dataset of a view, a chart, and a dashboard that refreshes each second.

The server's metadata database is in CHECKS_FOLDER. All objects are created over its REST API.
`browse.js` opens the dashboard in headless Chromium, waits until a number that changed in the
database has changed on the page, and takes a screenshot.
"""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import psycopg2
import requests

HERE = Path(__file__).parent
SUPERSET = str(Path(sys.executable).with_name("superset"))
FOLDER = Path(os.environ["CHECKS_FOLDER"])
HOST, DATABASE_PORT, USER, DATABASE, FLAVOUR = (os.environ[name] for name in ("PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "FLAVOUR"))
START_TIMEOUT_S = 180.0
VIEW = "per_customer"

count = 0


def check(name, work):
    global count
    count += 1
    try:
        result = work()
    except Exception as error:  # noqa: BLE001  # any error is reported
        print(f"not ok {count} - {name}\n  # {type(error).__name__}: {error}", flush=True)
        return None
    print(f"ok {count} - {name}", flush=True)
    return result


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def superset(*words):
    run = subprocess.run([SUPERSET, *words], env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-500:]


ENVIRONMENT = {
    **os.environ,
    "SUPERSET_HOME": str(FOLDER),
    "SUPERSET_CONFIG_PATH": str(HERE / "superset_config.py"),
    "FLASK_APP": "superset.app:create_app()",
}
PORT = free_port()
URL = f"http://127.0.0.1:{PORT}"
client = requests.Session()


def install():
    superset("db", "upgrade")
    superset(
        "fab", "create-admin", "--username", "admin", "--firstname", "a", "--lastname", "b", "--email", "a@localhost", "--password", "admin"
    )
    superset("init")


def start():
    server = subprocess.Popen(
        [SUPERSET, "run", "-h", "127.0.0.1", "-p", str(PORT), "--with-threads"],
        env=ENVIRONMENT, stdout=(FOLDER / "superset.log").open("w"), stderr=subprocess.STDOUT,
    )  # fmt: skip
    end = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            if requests.get(f"{URL}/health", timeout=5).text == "OK":
                return server
        except requests.ConnectionError:
            pass
        assert server.poll() is None, "it ended"
        assert time.monotonic() < end, "it does not answer"
        time.sleep(0.5)  # it does not announce when it is ready


def call(method, path, body=None, **parameters):
    answer = client.request(method, f"{URL}/api/v1/{path}", json=body, params=parameters, timeout=60)
    assert answer.status_code < 300, f"{path}: {answer.status_code} {answer.text[:400]}"
    return answer.json()


def login():
    token = call("POST", "security/login", {"username": "admin", "password": "admin", "provider": "db", "refresh": True})["access_token"]
    client.headers["Authorization"] = f"Bearer {token}"


def query(sql):
    body = {
        "database_id": ids["database"],
        "sql": sql,
        "schema": "public",
        "runAsync": False,
        "queryLimit": 1000,
        "client_id": os.urandom(5).hex(),
    }
    return call("POST", "sqllab/execute/", body)["data"]


def execute(sql):
    connection = psycopg2.connect(host=HOST, port=DATABASE_PORT, user=USER, dbname=DATABASE)
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(sql)
    connection.close()


def write(number, amount):
    execute(f"INSERT INTO orders VALUES ({number}, 'superset', {amount}, now(), true)")
    if FLAVOUR == "postgres":
        execute(f"REFRESH MATERIALIZED VIEW {VIEW}")


ids = {}
URI = f"postgresql+psycopg2://{USER}@{HOST}:{DATABASE_PORT}/{DATABASE}"
METRIC = {"expressionType": "SQL", "sqlExpression": "sum(amount)", "label": "amount", "optionName": "metric_amount"}


def chart(name, kind, settings):
    parameters = {"datasource": f"{ids['dataset']}__table", "viz_type": kind, "adhoc_filters": [], **settings}
    body = {
        "slice_name": name,
        "viz_type": kind,
        "datasource_id": ids["dataset"],
        "datasource_type": "table",
        "params": json.dumps(parameters),
    }
    return call("POST", "chart/", body)["id"]


def data(columns, metrics, **more):
    query = {"columns": columns, "metrics": metrics, "row_limit": 100, "filters": [], "extras": {}, **more}
    body = {
        "datasource": {"id": ids["dataset"], "type": "table"},
        "queries": [query],
        "result_format": "json",
        "result_type": "full",
        "force": True,
    }
    return call("POST", "chart/data", body)["result"][0]["data"]


def dashboard():
    big, bars = ids["charts"]
    row = {
        "type": "ROW",
        "id": "ROW-1",
        "children": ["CHART-1", "CHART-2"],
        "parents": ["ROOT_ID", "GRID_ID"],
        "meta": {"background": "BACKGROUND_TRANSPARENT"},
    }
    places = {
        "DASHBOARD_VERSION_KEY": "v2", "ROOT_ID": {"type": "ROOT", "id": "ROOT_ID", "children": ["GRID_ID"]},
        "GRID_ID": {"type": "GRID", "id": "GRID_ID", "children": ["ROW-1"], "parents": ["ROOT_ID"]}, "ROW-1": row,
    }  # fmt: skip
    for n, (slice_id, width) in enumerate(((big, 4), (bars, 8)), 1):
        meta = {"chartId": slice_id, "width": width, "height": 50}
        places[f"CHART-{n}"] = {
            "type": "CHART",
            "id": f"CHART-{n}",
            "children": [],
            "parents": ["ROOT_ID", "GRID_ID", "ROW-1"],
            "meta": meta,
        }
    settings = {"refresh_frequency": 1, "timed_refresh_immune_slices": [], "color_scheme": "supersetColors"}
    body = {
        "dashboard_title": "Orders, every second",
        "slug": "orders",
        "published": True,
        "position_json": json.dumps(places),
        "json_metadata": json.dumps(settings),
    }
    ids["dashboard"] = call("POST", "dashboard/", body)["id"]
    for slice_id in ids["charts"]:
        call("PUT", f"chart/{slice_id}", {"dashboards": [ids["dashboard"]]})


def browse():
    browser = subprocess.Popen(
        ["node", str(HERE / "browse.js"), URL, str(FOLDER / "dashboard.png")],
        cwd=HERE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    lines = iter(browser.stdout.readline, "")
    first = json.loads(next(lines))
    assert "number" in first, first
    write(6001, 123456)
    later = json.loads(next(lines))
    browser.wait(60)
    assert "number" in later, later
    assert first["number"] != later["number"], (first, later)
    assert later["refreshes"] >= 3, later
    if target := os.environ.get("SCREENSHOT"):
        Path(target).write_bytes((FOLDER / "dashboard.png").read_bytes())


def same(actual, expected):
    assert actual == expected, f"{actual} and not {expected}"


execute("DELETE FROM orders WHERE id > 6000")
check("its own metadata", install)
server = check("it starts", start)
try:
    assert server is not None, (FOLDER / "superset.log").read_text()[-1000:]
    check("log in", login)
    check("test the connection", lambda: call("POST", "database/test_connection", {"sqlalchemy_uri": URI, "database_name": "shop"}))
    body = {"database_name": "shop", "sqlalchemy_uri": URI, "expose_in_sqllab": True, "allow_dml": True}
    ids["database"] = check("add the database", lambda: call("POST", "database/", body)["id"])
    check("schemas", lambda: same({"annex", "public"} <= set(call("GET", f"database/{ids['database']}/schemas/")["result"]), True))
    tables = check("tables and views", lambda: call("GET", f"database/{ids['database']}/tables/", q="(schema_name:public)")["result"])
    check("a view is a view", lambda: same({t["value"]: t["type"] for t in tables}["large_orders"], "view"))
    metadata = f"database/{ids['database']}/table_metadata/"
    check(
        "columns and keys of a table",
        lambda: same(
            [c["name"] for c in call("GET", metadata, name="orders", schema="public")["columns"]][:3], ["id", "customer", "amount"]
        ),
    )
    check("SQL Lab: a query", lambda: same(query("SELECT count(*) AS n FROM orders")[0]["n"], 1000))
    check("SQL Lab: every type", lambda: same(len(query("SELECT * FROM kinds ORDER BY id")), 4))
    check("SQL Lab: several statements", lambda: same(query("SELECT 1 AS a; SELECT 2 AS b"), [{"b": 2}]))
    body = {"database": ids["database"], "schema": "public", "table_name": VIEW}
    ids["dataset"] = check("a dataset of a materialized view", lambda: call("POST", "dataset/", body)["id"])
    check(
        "its columns",
        lambda: same(
            {c["column_name"] for c in call("GET", f"dataset/{ids['dataset']}")["result"]["columns"]}, {"customer", "orders", "amount"}
        ),
    )
    check("refresh its columns", lambda: call("PUT", f"dataset/{ids['dataset']}/refresh"))
    body = {
        "database": ids["database"],
        "schema": "public",
        "table_name": "large",
        "sql": "SELECT * FROM large_orders WHERE amount > 1100",
    }
    check("a virtual dataset over a view", lambda: call("POST", "dataset/", body))
    check("data of a chart", lambda: same(len(data(["customer"], [METRIC], orderby=[[METRIC, False]])), 10))
    check(
        "data with a filter",
        lambda: same(len(data(["customer"], [METRIC], filters=[{"col": "customer", "op": "IN", "val": ["customer 1", "customer 2"]}])), 2),
    )
    big = {"metric": METRIC, "y_axis_format": ",d", "header_font_size": 0.4, "subheader": "all orders"}
    bars = {"metrics": [METRIC], "x_axis": "customer", "groupby": [], "row_limit": 20, "orientation": "vertical"}
    ids["charts"] = [
        check("a chart: a big number", lambda: chart("Amount", "big_number_total", big)),
        check("a chart: bars", lambda: chart("By customer", "echarts_timeseries_bar", bars)),
    ]
    check("a dashboard that refreshes every second", dashboard)
    check("headless Chromium sees what is written", browse)
finally:
    if server is not None:
        server.terminate()
        server.wait(30)
    execute("DELETE FROM orders WHERE id > 6000")
print(f"1..{count}", flush=True)
