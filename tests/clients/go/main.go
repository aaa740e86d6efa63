// pgx: binary by default, prepared statements in a cache, batches, COPY; and database/sql over it. Told in the Test Anything Protocol.
package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
)

const slow = "SELECT count(*) FROM orders a, orders b, orders c, orders d WHERE a.id + b.id = c.id * d.id"

var (
	ctx   = context.Background()
	count = 0
)

func check(name string, work func() error) {
	count++
	if err := work(); err != nil {
		fmt.Printf("not ok %d - %s\n  # %s\n", count, name, strings.ReplaceAll(err.Error(), "\n", " | "))
	} else {
		fmt.Printf("ok %d - %s\n", count, name)
	}
}

func same(found, expected any) error {
	if !reflect.DeepEqual(found, expected) {
		return fmt.Errorf("%#v and not %#v", found, expected)
	}
	return nil
}

func fails(code string, err error) error {
	var told *pgconn.PgError
	if !errors.As(err, &told) {
		return fmt.Errorf("no error %s but %v", code, err)
	}
	return same(told.Code, code)
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Println("Bail out!", err)
		os.Exit(1)
	}
	return value
}

func ids(rows pgx.Rows, err error) ([]int64, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

func scalar[T any](conn *pgx.Conn, query string, args ...any) (T, error) {
	var value T
	err := conn.QueryRow(ctx, query, args...).Scan(&value)
	return value, err
}

func expect[T any](conn *pgx.Conn, expected T, query string, args ...any) error {
	found, err := scalar[T](conn, query, args...)
	return first(err, same(found, expected))
}

func everyType(conn *pgx.Conn, mode pgx.QueryExecMode) error {
	rows, err := conn.Query(ctx, "SELECT * FROM kinds ORDER BY id", mode)
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, pgx.RowToMap)
	if err != nil {
		return err
	}
	one, four := found[0], found[3]
	amount := one["a_numeric"].(pgtype.Numeric)
	text, _ := amount.Value()
	return first(
		same(len(found), 4), same(one["a_bigint"], int64(9223372036854775807)), same(one["a_real"], float32(1.5)), same(text, "123456789.125"),
		same(one["a_char"], "ab   "), same(one["a_bytea"], []byte{0, 255, 97}),
		same(one["a_timestamptz"].(time.Time).UTC().Format(time.RFC3339Nano), "2026-01-02T03:04:05.678901Z"),
		same(one["an_interval"], pgtype.Interval{Months: 1, Days: 2, Microseconds: 11045500000, Valid: true}),
		same(one["a_jsonb"], map[string]any{"a": []any{1.0, 2.5, nil}, "b": "ü"}), same(one["integers"], []any{int32(1), nil, int32(-3)}),
		same(one["texts"], []any{"x", "y z", nil, ""}), same(found[2]["a_text"], nil), same(four["a_text"], "two\nlines\t\"quoted\" \\ € 😀"),
	)
}

func main() {
	conn := must(pgx.Connect(ctx, ""))
	check("connects, pings", func() error { return first(conn.Ping(ctx), same(conn.PgConn().ParameterStatus("server_version")[:3], "15.")) })
	for name, mode := range map[string]pgx.QueryExecMode{
		"cached statement": pgx.QueryExecModeCacheStatement, "cached description": pgx.QueryExecModeCacheDescribe,
		"described each time": pgx.QueryExecModeDescribeExec, "types by Go": pgx.QueryExecModeExec, "simple protocol": pgx.QueryExecModeSimpleProtocol,
	} {
		check("every type, "+name, func() error { return everyType(conn, mode) })
		check("values, "+name, func() error {
			return first(
				expect(conn, int64(5), "SELECT id FROM orders WHERE id = $1 AND customer = $2 AND placed > $3", mode, 5, "customer 5", time.Unix(0, 0)),
				expect(conn, "it's \\ ü", "SELECT $1::text", mode, "it's \\ ü"),
			)
		})
	}
	check("values in all types", func() error {
		at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
		return first(
			expect(conn, int16(-5), "SELECT $1::smallint", int16(-5)), expect(conn, 2.5, "SELECT $1::float8", 2.5), expect(conn, true, "SELECT $1::bool", true),
			expect(conn, []byte{0, 255}, "SELECT $1::bytea", []byte{0, 255}), expect(conn, []string{"a", "b"}, "SELECT $1::text[]", []string{"a", "b"}),
			expect(conn, []int32{1, 2}, "SELECT $1::int[]", []int32{1, 2}), expect(conn, [16]byte{15: 5}, "SELECT $1::uuid", [16]byte{15: 5}),
			expect(conn, at.UnixMicro(), "SELECT (extract(epoch FROM $1::timestamptz) * 1000000)::bigint", at),
			expect(conn, 36*time.Hour, "SELECT $1::interval", 36*time.Hour), expect(conn, (*string)(nil), "SELECT $1::text", nil),
			expect(conn, map[string]any{"a": 1.0}, "SELECT $1::jsonb", map[string]any{"a": 1.0}), expect(conn, "1.10", "SELECT $1::numeric(10, 2)::text", "1.10"),
		)
	})
	check("structs, named arguments, descriptions", func() error {
		type order struct {
			ID       int64
			Customer string
		}
		rows, err := conn.Query(ctx, "SELECT id, customer FROM orders WHERE id <= @n ORDER BY id", pgx.NamedArgs{"n": 2})
		if err != nil {
			return err
		}
		fields := rows.FieldDescriptions()
		names := []any{fields[0].Name, fields[0].DataTypeOID, fields[1].Name, fields[1].DataTypeOID}
		found, err := pgx.CollectRows(rows, pgx.RowToStructByName[order])
		return first(err, same(found, []order{{1, "customer 1"}, {2, "customer 2"}}), same(names, []any{"id", uint32(20), "customer", uint32(25)}))
	})
	check("ANY of a slice, LIMIT as a value", func() error {
		found, err := ids(conn.Query(ctx, "SELECT id FROM orders WHERE id = ANY($1) ORDER BY id LIMIT $2", []int64{3, 1, 2}, 2))
		return first(err, same(found, []int64{1, 2}))
	})
	check("a prepared statement", func() error {
		described, err := conn.Prepare(ctx, "by amount", "SELECT id FROM orders WHERE amount > $1 AND paid = $2")
		if err != nil {
			return err
		}
		return first(same(described.ParamOIDs, []uint32{1700, 16}), expect(conn, int64(900), "by amount", 1124, true), conn.Deallocate(ctx, "by amount"))
	})
	check("a batch", func() error {
		batch := &pgx.Batch{}
		for n := range 20 {
			batch.Queue("SELECT $1::int", n)
		}
		results := conn.SendBatch(ctx, batch)
		for n := range 20 {
			var found int
			if err := first(results.QueryRow().Scan(&found), same(found, n)); err != nil {
				return err
			}
		}
		return results.Close()
	})
	check("a batch with an error", func() error {
		batch := &pgx.Batch{}
		batch.Queue("SELECT 1")
		batch.Queue("SELECT 1/0")
		batch.Queue("SELECT 2")
		return first(fails("22012", conn.SendBatch(ctx, batch).Close()), conn.Ping(ctx))
	})
	check("errors", func() error {
		for query, code := range map[string]string{
			"SELECT * FROM nobody": "42P01", "SELECT nosuch FROM orders": "42703", "SELEC": "42601", "SELECT 1/0": "22012",
			"INSERT INTO orders VALUES (1, 'x', 1, now(), true)": "23505", "INSERT INTO orders (id) VALUES (-1)": "23502",
		} {
			_, err := conn.Exec(ctx, query)
			if err := fails(code, err); err != nil {
				return err
			}
		}
		return conn.Ping(ctx)
	})
	check("writes and their tags", func() error {
		_, err := conn.Exec(ctx, "DELETE FROM written WHERE client = 'pgx'")
		inserted, err2 := conn.Exec(ctx, "INSERT INTO written VALUES ('pgx', $1, $2), ('pgx', $3, NULL)", 1, "a", 2)
		updated, err3 := conn.Exec(ctx, "UPDATE written SET note = $1 WHERE client = 'pgx'", "x")
		deleted, err4 := conn.Exec(ctx, "DELETE FROM written WHERE client = 'pgx'")
		return first(err, err2, err3, err4, same([]string{inserted.String(), updated.String(), deleted.String()}, []string{"INSERT 0 2", "UPDATE 2", "DELETE 2"}))
	})
	check("transactions, nested", func() error {
		tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.Serializable})
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "INSERT INTO written VALUES ('pgx', 1, 'gone')")
		nested := pgx.BeginFunc(ctx, tx, func(inner pgx.Tx) error { _, err := inner.Exec(ctx, "SELECT 1/0"); return err })
		var level string
		return first(
			err, fails("22012", nested), tx.QueryRow(ctx, "SHOW transaction_isolation").Scan(&level), same(level, "serializable"), tx.Rollback(ctx),
			expect(conn, int64(0), "SELECT count(*) FROM written WHERE client = 'pgx'"),
		)
	})
	check("a read-only transaction", func() error {
		tx := must(conn.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly}))
		_, err := tx.Exec(ctx, "DELETE FROM written")
		return first(fails("25006", err), tx.Rollback(ctx))
	})
	check("CopyFrom, in binary", func() error {
		rows := [][]any{{"pgx", int32(1), "one"}, {"pgx", int32(2), nil}}
		n, err := conn.CopyFrom(ctx, pgx.Identifier{"written"}, []string{"client", "n", "note"}, pgx.CopyFromRows(rows))
		_, err2 := conn.Exec(ctx, "DELETE FROM written WHERE client = 'pgx'")
		return first(err, err2, same(n, int64(2)))
	})
	check("COPY to a writer", func() error {
		var out bytes.Buffer
		tag, err := conn.PgConn().CopyTo(ctx, &out, "COPY (SELECT id FROM orders WHERE id < 3 ORDER BY id) TO STDOUT (FORMAT csv)")
		return first(err, same(tag.String(), "COPY 2"), same(out.String(), "1\n2\n"))
	})
	check("several statements by the simple protocol", func() error {
		results, err := conn.PgConn().Exec(ctx, "SELECT 1; SELECT 2").ReadAll()
		return first(err, same(len(results), 2), same(string(results[1].Rows[0][0]), "2"))
	})
	check("a pipeline", func() error {
		pipeline := conn.PgConn().StartPipeline(ctx)
		for range 3 {
			pipeline.SendQueryParams("SELECT 1", nil, nil, nil, nil)
		}
		if err := pipeline.Sync(); err != nil {
			return err
		}
		for range 3 {
			results, err := pipeline.GetResults()
			if err != nil {
				return err
			}
			if read := results.(*pgconn.ResultReader).Read(); read.Err != nil {
				return read.Err
			}
		}
		return pipeline.Close()
	})
	check("a deadline cancels", func() error {
		other := must(pgx.Connect(ctx, ""))
		limited, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		_, err := other.Exec(limited, slow)
		if !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("%v", err)
		}
		return nil
	})
	check("a cancel request", func() error {
		other := must(pgx.Connect(ctx, ""))
		time.AfterFunc(300*time.Millisecond, func() { _ = other.PgConn().CancelRequest(ctx) })
		_, err := other.Exec(ctx, slow)
		return first(fails("57014", err), other.Close(ctx))
	})
	check("types loaded from the catalog", func() error {
		loaded, err := conn.LoadType(ctx, "_int4")
		return first(err, same(loaded.OID, uint32(1007)))
	})
	check("a pool", func() error {
		pool := must(pgxpool.New(ctx, "pool_max_conns=4"))
		defer pool.Close()
		errs := make(chan error, 40)
		for n := range 40 {
			go func() {
				var found int
				errs <- first(pool.QueryRow(ctx, "SELECT $1::int", n).Scan(&found), same(found, n))
			}()
		}
		for range 40 {
			if err := <-errs; err != nil {
				return err
			}
		}
		return nil
	})
	check("database/sql", func() error {
		db := must(sql.Open("pgx", ""))
		defer db.Close()
		var n int
		rows, err := db.Query("SELECT id, amount, placed FROM orders WHERE id <= $1", 10)
		if err != nil {
			return err
		}
		types, err := rows.ColumnTypes()
		for rows.Next() {
			n++
		}
		tx := must(db.Begin())
		_, err2 := tx.Exec("INSERT INTO written VALUES ('sql', 1, $1)", "gone")
		return first(err, err2, rows.Err(), same(n, 10), same(types[2].DatabaseTypeName(), "TIMESTAMPTZ"), tx.Rollback())
	})
	if os.Getenv("FLAVOUR") == "tailgate" {
		check("TAIL by a cursor", func() error {
			tx := must(conn.Begin(ctx))
			_, err := tx.Exec(ctx, "DECLARE c CURSOR FOR TAIL per_customer")
			rows, err2 := tx.Query(ctx, "FETCH 10 c")
			n := 0
			for err2 == nil && rows.Next() {
				n++
			}
			return first(err, err2, same(n, 10), tx.Rollback(ctx))
		})
	}
	fmt.Printf("1..%d\n", count)
}
