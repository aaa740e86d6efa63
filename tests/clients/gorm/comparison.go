// Runs the steps of GORM on Tailgate and on PostgreSQL; a check passes if both have the same result.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

const schema = "goorm"

var count = 0

type step func(db *gorm.DB) (any, error)

func open(port string) *gorm.DB {
	dsn := fmt.Sprintf("host=127.0.0.1 port=%s user=postgres dbname=shop TimeZone=UTC search_path=%s", port, schema)
	db, err := gorm.Open(postgres.Open(dsn), &gorm.Config{Logger: logger.Discard, TranslateError: false})
	if err != nil {
		panic(err)
	}
	return db
}

// compare runs a step on both servers. What it returns is compared as JSON. An error of PostgreSQL is a mistake of the step.
func compare(servers map[string]*gorm.DB, name string, work step) {
	count++
	texts := map[string]string{}
	for _, server := range []string{"tailgate", "postgres"} {
		result, err := work(servers[server])
		text, failed := json.MarshalIndent(result, "", " ")
		if err = errors.Join(err, failed); err != nil {
			fmt.Printf("not ok %d - %s\n  # %s: %s\n", count, name, server, strings.ReplaceAll(err.Error(), "\n", " | "))
			return
		}
		texts[server] = string(text)
	}
	if texts["tailgate"] == texts["postgres"] {
		fmt.Printf("ok %d - %s\n", count, name)
		return
	}
	ours, theirs := strings.Split(texts["tailgate"], "\n"), strings.Split(texts["postgres"], "\n")
	at := 0
	for at < len(ours)-1 && at < len(theirs)-1 && ours[at] == theirs[at] {
		at++
	}
	fmt.Printf("not ok %d - %s\n  # %s and not %s\n", count, name, part(ours, at), part(theirs, at))
}

func part(lines []string, at int) string {
	return strings.Join(lines[max(0, at-4):min(len(lines), at+6)], " ")
}

// refused returns the SQLSTATE of an error that a step expects.
func refused(err error) string {
	var told *pgconn.PgError
	if errors.As(err, &told) {
		return told.Code
	}
	return fmt.Sprint("no error of the server: ", err)
}

func rows(db *gorm.DB, query string) (any, error) {
	var found []map[string]any
	err := db.Raw(query).Scan(&found).Error
	return found, err
}

func main() {
	servers := map[string]*gorm.DB{"tailgate": open(os.Getenv("PGPORT")), "postgres": open(os.Getenv("CONTROL_PORT"))}
	for _, each := range steps {
		compare(servers, each.name, each.work)
	}
	fmt.Printf("1..%d\n", count)
}
