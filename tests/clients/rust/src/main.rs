//! tokio-postgres: everything prepared and in binary, pipelined by itself. Told in the Test Anything Protocol.

use bytes::{Bytes, BytesMut};
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Utc};
use futures_util::{future::join_all, pin_mut, SinkExt, StreamExt, TryStreamExt};
use rust_decimal::Decimal;
use std::{env, error::Error, fmt::Debug, future::Future, time::Duration};
use tokio_postgres::{binary_copy::{BinaryCopyInWriter, BinaryCopyOutStream}, types::{ToSql, Type}, Client, Config, IsolationLevel, NoTls, SimpleQueryMessage};
use uuid::Uuid;

type Outcome = Result<(), Box<dyn Error>>;
const SLOW: &str = "SELECT count(*) FROM orders a, orders b, orders c, orders d WHERE a.id + b.id = c.id * d.id";

struct Checks(u32);

impl Checks {
    async fn check(&mut self, name: &str, work: impl Future<Output = Outcome>) {
        self.0 += 1;
        match work.await {
            Ok(()) => println!("ok {} - {}", self.0, name),
            Err(error) => println!("not ok {} - {}\n  # {}", self.0, name, format!("{error} {error:?}").replace('\n', " | ")),
        }
    }
}

fn same<T: PartialEq<U> + Debug, U: Debug>(found: T, expected: U) -> Outcome {
    if found == expected { Ok(()) } else { Err(format!("{found:?} and not {expected:?}").into()) }
}

fn fails<T>(code: &str, result: Result<T, tokio_postgres::Error>) -> Outcome {
    match result {
        Err(error) => same(error.code().map(|c| c.code()), Some(code)),
        Ok(_) => Err(format!("no error {code}").into()),
    }
}

async fn connect(application: &str) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = Config::new()
        .host(env::var("PGHOST").unwrap()).port(env::var("PGPORT").unwrap().parse().unwrap())
        .user(env::var("PGUSER").unwrap()).dbname(env::var("PGDATABASE").unwrap()).application_name(application).connect(NoTls).await?;
    tokio::spawn(async move { let _ = connection.await; });
    Ok(client)
}

async fn back<'a, T>(client: &Client, cast: &str, value: T) -> Outcome
where T: ToSql + Sync + PartialEq + Debug + for<'b> tokio_postgres::types::FromSql<'b> {
    let row = client.query_one(&format!("SELECT $1::{cast}"), &[&value]).await?;
    same(row.try_get::<_, T>(0)?, value)
}

#[tokio::main]
async fn main() -> Outcome {
    let mut client = connect("checks").await?;
    let mut checks = Checks(0);
    checks.check("every type", async {
        let rows = client.query("SELECT * FROM kinds ORDER BY id", &[]).await?;
        let one = &rows[0];
        same(one.try_get::<_, bool>("a_boolean")?, true)?;
        same(one.try_get::<_, i16>("a_smallint")?, 32767)?;
        same(one.try_get::<_, i64>("a_bigint")?, i64::MAX)?;
        same(one.try_get::<_, f32>("a_real")?, 1.5)?;
        same(one.try_get::<_, f64>("a_double")?, 0.1)?;
        same(one.try_get::<_, Decimal>("a_numeric")?, "123456789.125".parse::<Decimal>()?)?;
        same(one.try_get::<_, &str>("a_varchar")?, "häßlich")?;
        same(one.try_get::<_, &str>("a_char")?, "ab   ")?;
        same(one.try_get::<_, &[u8]>("a_bytea")?, &[0u8, 255, 97][..])?;
        same(one.try_get::<_, NaiveDate>("a_date")?, NaiveDate::from_ymd_opt(2026, 2, 28).unwrap())?;
        same(one.try_get::<_, NaiveTime>("a_time")?.to_string(), "23:59:59.500")?;
        same(one.try_get::<_, NaiveDateTime>("a_timestamp")?.to_string(), "2026-01-02 03:04:05.678901")?;
        same(one.try_get::<_, DateTime<Utc>>("a_timestamptz")?.to_string(), "2026-01-02 03:04:05.678901 UTC")?;
        same(one.try_get::<_, Uuid>("a_uuid")?.to_string(), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")?;
        same(one.try_get::<_, serde_json::Value>("a_jsonb")?, serde_json::json!({"a": [1, 2.5, null], "b": "ü"}))?;
        same(one.try_get::<_, Vec<Option<i32>>>("integers")?, vec![Some(1), None, Some(-3)])?;
        same(one.try_get::<_, Vec<Option<String>>>("texts")?, vec![Some("x".into()), Some("y z".into()), None, Some(String::new())])?;
        same(rows[2].try_get::<_, Option<String>>("a_text")?, None::<String>)?;
        same(rows[3].try_get::<_, &str>("a_text")?, "two\nlines\t\"quoted\" \\ € 😀")
    }).await;
    checks.check("values in all types", async {
        back(&client, "bool", true).await?;
        back(&client, "smallint", -5i16).await?;
        back(&client, "int", Some(5i32)).await?;
        back(&client, "int", None::<i32>).await?;
        back(&client, "bigint", i64::MIN).await?;
        back(&client, "real", 1.5f32).await?;
        back(&client, "float8", 1e300f64).await?;
        back(&client, "numeric", "-12.5".parse::<Decimal>()?).await?;
        back(&client, "text", "it's \\ ü".to_string()).await?;
        back(&client, "bytea", vec![0u8, 255]).await?;
        back(&client, "date", NaiveDate::from_ymd_opt(1, 1, 1).unwrap()).await?;
        back(&client, "time", NaiveTime::from_hms_opt(1, 2, 3).unwrap()).await?;
        back(&client, "timestamp", NaiveDate::from_ymd_opt(2026, 1, 2).unwrap().and_hms_opt(3, 4, 5).unwrap()).await?;
        back(&client, "timestamptz", DateTime::<Utc>::from_timestamp(1_000_000, 6000).unwrap()).await?;
        back(&client, "uuid", Uuid::from_u128(5)).await?;
        back(&client, "jsonb", serde_json::json!({"a": [1, null]})).await?;
        back(&client, "int[]", vec![Some(1i32), None]).await?;
        back(&client, "text[]", vec!["a".to_string()]).await?;
        back(&client, "timestamptz[]", Vec::<DateTime<Utc>>::new()).await
    }).await;
    checks.check("types of parameters that nothing says", async {
        let statement = client.prepare("SELECT id, customer FROM orders WHERE amount > $1 AND customer = $2 ORDER BY id LIMIT $3").await?;
        same(statement.params(), &[Type::NUMERIC, Type::TEXT, Type::INT8][..])?;
        same(statement.columns().iter().map(|c| (c.name().to_string(), c.type_().clone())).collect::<Vec<_>>(),
            vec![("id".to_string(), Type::INT8), ("customer".to_string(), Type::TEXT)])?;
        let rows = client.query(&statement, &[&Decimal::from(100), &"customer 3", &2i64]).await?;
        same(rows.iter().map(|r| r.get::<_, i64>(0)).collect::<Vec<_>>(), vec![83, 93])
    }).await;
    checks.check("types that the client gives", async {
        let row = client.query_typed("SELECT $1 + 1, $2", &[(&41i32, Type::INT4), (&"x", Type::TEXT)]).await?.remove(0);
        same(row.try_get::<_, i32>(0)?, 42)
    }).await;
    checks.check("types from the catalog", async {
        let statement = client.prepare("SELECT relname, relkind, oid, relacl FROM pg_catalog.pg_class WHERE relname = $1").await?;
        same(statement.columns()[1].type_(), &Type::CHAR)?;
        same(statement.columns()[3].type_().name(), "_aclitem")
    }).await;
    checks.check("ANY of a list, LIKE", async {
        same(client.query_one("SELECT count(*) FROM orders WHERE id = ANY($1)", &[&vec![1i64, 2, 3]]).await?.get::<_, i64>(0), 3)?;
        same(client.query_one("SELECT count(*) FROM orders WHERE customer LIKE $1", &[&"%3"]).await?.get::<_, i64>(0), 100)
    }).await;
    checks.check("no row, one row, many rows", async {
        same(client.query_opt("SELECT id FROM orders WHERE id = -1", &[]).await?.is_none(), true)?;
        same(client.query("SELECT * FROM orders", &[]).await?.len(), 1000)
    }).await;
    checks.check("a stream of rows", async {
        let rows = client.query_raw("SELECT id FROM orders WHERE id > $1", [0i64]).await?;
        pin_mut!(rows);
        let mut sum = 0;
        while let Some(row) = rows.try_next().await? { sum += row.get::<_, i64>(0); }
        same(sum, 500500)
    }).await;
    checks.check("pipelined by itself", async {
        let statement = client.prepare("SELECT $1::int").await?;
        let found = join_all((0..50).map(|n| { let (c, s) = (&client, &statement); async move { c.query_one(s, &[&n]).await } })).await;
        for (n, row) in found.into_iter().enumerate() { same(row?.get::<_, i32>(0), n as i32)?; }
        Ok(())
    }).await;
    checks.check("simple queries", async {
        let messages = client.simple_query("SELECT 1 AS a; SELECT 'x' AS b; SET TIME ZONE 'UTC'").await?;
        let rows: Vec<String> = messages.iter().filter_map(|m| match m { SimpleQueryMessage::Row(r) => r.get(0).map(String::from), _ => None }).collect();
        same(rows, vec!["1", "x"])?;
        client.batch_execute("SELECT 1; ; SELECT 2").await?;
        Ok(())
    }).await;
    checks.check("errors", async {
        for (query, code) in [("SELECT * FROM nobody", "42P01"), ("SELECT nosuch FROM orders", "42703"), ("SELEC", "42601"), ("SELECT 1/0", "22012"),
            ("INSERT INTO orders VALUES (1, 'x', 1, now(), true)", "23505"), ("INSERT INTO orders (id) VALUES (-1)", "23502")] {
            fails(code, client.execute(query, &[]).await)?;
        }
        let error = client.execute("INSERT INTO orders (id) VALUES (-1)", &[]).await.unwrap_err();
        same(error.as_db_error().and_then(|e| e.column()), Some("customer"))?;
        same(client.query_one("SELECT 1", &[]).await?.get::<_, i32>(0), 1)
    }).await;
    checks.check("writes", async {
        client.execute("DELETE FROM written WHERE client = 'rust'", &[]).await?;
        same(client.execute("INSERT INTO written VALUES ('rust', $1, $2), ('rust', 2, NULL)", &[&1i32, &"a"]).await?, 2)?;
        same(client.query_one("UPDATE written SET note = $1 WHERE client = 'rust' AND n = 1 RETURNING note", &[&"x"]).await?.get::<_, String>(0), "x")?;
        same(client.execute("DELETE FROM written WHERE client = 'rust'", &[]).await?, 2)
    }).await;
    checks.check("COPY out: text and binary", async {
        let stream = client.copy_out("COPY (SELECT id FROM orders WHERE id < 3 ORDER BY id) TO STDOUT").await?;
        let data: BytesMut = stream.try_fold(BytesMut::new(), |mut all, piece| async move { all.extend_from_slice(&piece); Ok(all) }).await?;
        same(&data[..], &b"1\n2\n"[..])?;
        let stream = client.copy_out("COPY (SELECT id, customer FROM orders ORDER BY id) TO STDOUT BINARY").await?;
        let rows: Vec<_> = BinaryCopyOutStream::new(stream, &[Type::INT8, Type::TEXT]).try_collect().await?;
        same(rows.len(), 1000)?;
        same(rows[4].try_get::<&str>(1)?, "customer 5")
    }).await;
    checks.check("COPY in: text and binary", async {
        let sink = client.copy_in("COPY written FROM STDIN").await?;
        pin_mut!(sink);
        sink.send(Bytes::from_static(b"rust\t1\tone\n")).await?;
        same(sink.finish().await?, 1)?;
        let writer = BinaryCopyInWriter::new(client.copy_in("COPY written FROM STDIN BINARY").await?, &[Type::TEXT, Type::INT4, Type::TEXT]);
        pin_mut!(writer);
        for n in 2..5i32 { writer.as_mut().write(&[&"rust", &n, &None::<String>]).await?; }
        same(writer.finish().await?, 3)?;
        same(client.execute("DELETE FROM written WHERE client = 'rust'", &[]).await?, 4)
    }).await;
    checks.check("cancel", async {
        let token = client.cancel_token();
        tokio::spawn(async move { tokio::time::sleep(Duration::from_millis(300)).await; let _ = token.cancel_query(NoTls).await; });
        fails("57014", client.execute(SLOW, &[]).await)
    }).await;
    checks.check("a transaction with savepoint and portal", async {
        let mut transaction = client.build_transaction().isolation_level(IsolationLevel::Serializable).read_only(true).start().await?;
        same(transaction.query_one("SHOW transaction_isolation", &[]).await?.get::<_, String>(0), "serializable")?;
        let inner = transaction.savepoint("point").await?;
        fails("22012", inner.execute("SELECT 1/0", &[]).await)?;
        inner.rollback().await?;
        let portal = transaction.bind("SELECT id FROM orders WHERE id > $1 ORDER BY id", &[&10i64]).await?;
        same(transaction.query_portal(&portal, 3).await?.iter().map(|r| r.get::<_, i64>(0)).collect::<Vec<_>>(), vec![11, 12, 13])?;
        same(transaction.query_portal(&portal, 0).await?.len(), 987)?;
        fails("25006", transaction.execute("DELETE FROM written", &[]).await)?;
        Ok(transaction.rollback().await?)
    }).await;
    checks.check("a transaction that is dropped is rolled back", async {
        {
            let transaction = client.transaction().await?;
            transaction.execute("INSERT INTO written VALUES ('rust', 1, 'gone')", &[]).await?;
        }
        same(client.query_one("SELECT count(*) FROM written WHERE client = 'rust'", &[]).await?.get::<_, i64>(0), 0)
    }).await;
    checks.check("many connections at once", async {
        for result in join_all((0..30).map(|n| async move { connect("many").await?.query_one("SELECT $1::int", &[&n]).await.map(|r| r.get::<_, i32>(0)) })).await {
            result?;
        }
        Ok(())
    }).await;
    if env::var("FLAVOUR").as_deref() == Ok("tailgate") {
        checks.check("TAIL as a stream", async {
            let follower = connect("follower").await?;
            let rows = follower.query_raw("TAIL per_customer WITH (SNAPSHOT = false)", Vec::<i32>::new()).await?;
            pin_mut!(rows);
            tokio::time::sleep(Duration::from_millis(300)).await;
            client.execute("INSERT INTO orders VALUES (5008, 'rust', 7, now(), true)", &[]).await?;
            let row = tokio::time::timeout(Duration::from_secs(10), rows.next()).await?.ok_or("no row")??;
            same(row.try_get::<_, &str>("customer")?, "rust")?;
            client.execute("DELETE FROM orders WHERE id = 5008", &[]).await?;
            Ok(())
        }).await;
    }
    println!("1..{}", checks.0);
    std::process::exit(0);
}
