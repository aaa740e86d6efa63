package main

import (
	"database/sql"
	"errors"
	"sort"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

type Company struct {
	ID   int    `gorm:"primaryKey"`
	Name string `gorm:"size:50;uniqueIndex"`
}

type User struct {
	ID        uint   `gorm:"primaryKey"`
	Email     string `gorm:"size:100;not null;unique"`
	Name      *string
	Age       uint8           `gorm:"default:18;check:age_checked,age >= 0"`
	Balance   float64         `gorm:"type:numeric(12,2);default:0"`
	Active    bool            `gorm:"default:true;not null;index:by_active,sort:desc,where:active"`
	Born      sql.NullTime    `gorm:"type:date"`
	Key       string          `gorm:"type:uuid;default:gen_random_uuid()"`
	Data      string          `gorm:"type:jsonb;default:'{}'"`
	Tags      string          `gorm:"type:text[]"`
	Bytes     []byte          `gorm:"comment:a picture"`
	Small     int16
	Ratio     float32
	CompanyID *int
	Company   *Company `gorm:"constraint:OnUpdate:CASCADE,OnDelete:SET NULL"`
	Orders    []Order
	Languages []Language `gorm:"many2many:user_languages"`
	CreatedAt time.Time
	DeletedAt gorm.DeletedAt `gorm:"index"`
}

type Order struct {
	ID     uint   `gorm:"primaryKey"`
	UserID uint   `gorm:"index:by_user,priority:1"`
	Code   string `gorm:"type:varchar(10);index:by_user,priority:2;index:by_lower,expression:lower(code)"`
	Amount int64
}

type Language struct {
	Code string `gorm:"primaryKey;size:5"`
	Name string
}

// LaterUser is the table of User in a later version.
type LaterUser struct {
	ID      uint    `gorm:"primaryKey"`
	Email   string  `gorm:"size:200;not null;unique"`
	Name    string  `gorm:"default:nobody"`
	Balance float64 `gorm:"type:numeric(14,2);default:1"`
	Small   int64
	Phone   string `gorm:"size:20;default:-;index"`
	Active  bool   `gorm:"default:false;not null;comment:can sign in"`
}

func (LaterUser) TableName() string { return "users" }

var steps = []struct {
	name string
	work step
}{
	{"AutoMigrate", func(db *gorm.DB) (any, error) {
		if err := db.Exec("CREATE SCHEMA " + schema).Error; err != nil {
			return nil, err
		}
		if err := db.AutoMigrate(&Company{}, &Language{}, &User{}, &Order{}); err != nil {
			return nil, err
		}
		return nil, db.AutoMigrate(&Company{}, &Language{}, &User{}, &Order{})
	}},
	{"tables", structure},
	{"Migrator", func(db *gorm.DB) (any, error) {
		m := db.Migrator()
		tables, err := m.GetTables()
		sort.Strings(tables)
		indexes, err2 := m.GetIndexes(&User{})
		names := []any{}
		for _, index := range indexes {
			unique, _ := index.Unique()
			primary, _ := index.PrimaryKey()
			names = append(names, []any{index.Name(), index.Columns(), unique, primary})
		}
		sort.Slice(names, func(i, j int) bool { return names[i].([]any)[0].(string) < names[j].([]any)[0].(string) })
		return []any{
			tables, names, m.CurrentDatabase(), m.HasTable("users"), m.HasTable("none"), m.HasColumn(&User{}, "Age"), m.HasIndex(&Order{}, "by_user"),
			m.HasConstraint(&User{}, "age_checked"), m.HasConstraint(&User{}, "Company"),
		}, errors.Join(err, err2)
	}},
	{"ColumnTypes", func(db *gorm.DB) (any, error) {
		types, err := db.Migrator().ColumnTypes(&User{})
		found := []any{}
		for _, each := range types {
			kind, _ := each.ColumnType()
			primary, _ := each.PrimaryKey()
			unique, _ := each.Unique()
			length, _ := each.Length()
			precision, scale, _ := each.DecimalSize()
			nullable, _ := each.Nullable()
			increments, _ := each.AutoIncrement()
			comment, _ := each.Comment()
			found = append(found, []any{each.Name(), kind, each.DatabaseTypeName(), primary, unique, length, precision, scale, nullable, increments, comment})
		}
		sort.Slice(found, func(i, j int) bool { return found[i].([]any)[0].(string) < found[j].([]any)[0].(string) }) // the query has no ORDER BY
		return found, err
	}},
	{"create", func(db *gorm.DB) (any, error) {
		name := "ann"
		users := []User{
			{Email: "a@b.c", Name: &name, Age: 30, Balance: 12.5, Tags: "{x,y}", Bytes: []byte{0, 255}, Company: &Company{Name: "acme"},
				Born: sql.NullTime{Time: time.Date(2000, 2, 29, 0, 0, 0, 0, time.UTC), Valid: true}, Data: `{"a": [1, 2]}`,
				Orders: []Order{{Code: "A", Amount: 5}, {Code: "B", Amount: 7}}, Languages: []Language{{"de", "German"}, {"en", "English"}}},
			{Email: "b@b.c", Tags: "{}"},
		}
		if err := db.Create(&users).Error; err != nil {
			return nil, err
		}
		many := []Order{}
		for n := 0; n < 25; n++ {
			many = append(many, Order{UserID: users[1].ID, Code: "C", Amount: int64(n)})
		}
		err := db.CreateInBatches(many, 10).Error
		return []any{users[0].ID, users[0].Company.ID, users[1].Age, users[1].Active, users[1].Data, users[0].Orders[1].ID, many[24].ID}, err
	}},
	{"upsert", func(db *gorm.DB) (any, error) {
		err := db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "code"}}, DoUpdates: clause.AssignmentColumns([]string{"name"})}).
			Create(&Language{"de", "Deutsch"}).Error
		nothing := db.Clauses(clause.OnConflict{DoNothing: true}).Create(&Language{"de", "x"})
		changed := Company{ID: 1, Name: "ACME"}
		found := Language{}
		err2 := db.Save(&changed).Error
		err3 := db.Where(Language{Code: "fr"}).Attrs(Language{Name: "French"}).FirstOrCreate(&found).Error
		return []any{nothing.RowsAffected, found, changed}, errors.Join(err, nothing.Error, err2, err3)
	}},
	{"associations", func(db *gorm.DB) (any, error) {
		var users []User
		err := db.Preload("Orders", func(db *gorm.DB) *gorm.DB { return db.Order("orders.amount DESC").Limit(3) }).Preload("Languages", func(db *gorm.DB) *gorm.DB {
			return db.Order("code")
		}).Joins("Company").Where("users.id < ?", 5).Order("users.id").Find(&users).Error
		found := []any{}
		for _, user := range users {
			found = append(found, []any{user.Email, user.Name, user.Age, user.Balance, user.Born, user.Data, user.Tags, user.Bytes, user.Company, user.Orders, user.Languages})
		}
		if err == nil {
			err = db.Model(&users[0]).Association("Languages").Delete(&Language{Code: "en"})
		}
		return []any{found, db.Model(&users[0]).Association("Languages").Count()}, err
	}},
	{"queries", func(db *gorm.DB) (any, error) {
		var totals []struct {
			UserID uint
			N, S   int64
		}
		var names []string
		var top []Order
		var total int64
		var exists bool
		err := errors.Join(
			db.Model(&Order{}).Select("user_id, count(*) AS n, sum(amount) AS s").Group("user_id").Having("count(*) > ?", 1).Order("user_id").Scan(&totals).Error,
			db.Model(&User{}).Where(db.Where("name ILIKE ?", "A%").Or("email IN ?", []string{"b@b.c"})).Not("age = ?", 5).Order("id").Pluck("email", &names).Error,
			db.Where("user_id IN (?)", db.Model(&User{}).Select("id").Where("active")).Order("amount DESC, id").Limit(3).Offset(1).Find(&top).Error,
			db.Model(&User{}).Distinct("age").Count(&total).Error,
			db.Raw("SELECT EXISTS (SELECT 1 FROM users WHERE data @> CAST(? AS jsonb))", `{"a": [1]}`).Scan(&exists).Error,
		)
		batches := 0
		var part []Order
		err2 := db.FindInBatches(&part, 10, func(tx *gorm.DB, batch int) error { batches++; return nil }).Error
		iterated, err3 := db.Model(&Order{}).Order("id").Rows()
		amounts := 0
		for iterated.Next() {
			var order Order
			if err := db.ScanRows(iterated, &order); err != nil {
				return nil, err
			}
			amounts += int(order.Amount)
		}
		iterated.Close()
		return []any{totals, names, top, total, exists, batches, amounts}, errors.Join(err, err2, err3)
	}},
	{"update and delete", func(db *gorm.DB) (any, error) {
		var changed []Order
		one := db.Model(&changed).Clauses(clause.Returning{Columns: []clause.Column{{Name: "id"}, {Name: "amount"}}}).Where("code = ?", "A").
			Update("amount", gorm.Expr("amount * ? + ?", 2, 1))
		two := db.Model(&User{}).Where("email = ?", "b@b.c").Updates(map[string]any{"age": 40, "name": nil})
		three := db.Where("amount < ?", 3).Delete(&Order{})
		four := db.Where("email = ?", "b@b.c").Delete(&User{})
		var left, all int64
		err := errors.Join(one.Error, two.Error, three.Error, four.Error, db.Model(&User{}).Count(&left).Error, db.Unscoped().Model(&User{}).Count(&all).Error)
		return []any{changed, two.RowsAffected, three.RowsAffected, four.RowsAffected, left, all}, err
	}},
	{"transactions", func(db *gorm.DB) (any, error) {
		inner := db.Transaction(func(tx *gorm.DB) error {
			if err := tx.Create(&Language{"xx", "outer"}).Error; err != nil {
				return err
			}
			failed := tx.Transaction(func(nested *gorm.DB) error { return nested.Create(&Language{"xx", "again"}).Error })
			var locked User
			if err := tx.Clauses(clause.Locking{Strength: "UPDATE", Options: "NOWAIT"}).First(&locked, 1).Error; err != nil {
				return err
			}
			return errors.Join(failed, gorm.ErrInvalidTransaction)
		}, &sql.TxOptions{Isolation: sql.LevelSerializable})
		var n int64
		err := db.Model(&Language{}).Count(&n).Error
		return []any{refused(inner), n, refused(db.Create(&User{Email: "a@b.c", Tags: "{}"}).Error), refused(db.Create(&Order{UserID: 99}).Error)}, err
	}},
	{"AutoMigrate of changed tables", func(db *gorm.DB) (any, error) { return nil, db.AutoMigrate(&LaterUser{}) }},
	{"changed tables", structure},
	{"changes by the Migrator", func(db *gorm.DB) (any, error) {
		m := db.Migrator()
		return nil, errors.Join(
			m.RenameColumn(&LaterUser{}, "phone", "telephone"), m.DropColumn(&User{}, "ratio"), m.DropIndex(&Order{}, "by_lower"),
			m.RenameIndex(&Order{}, "by_user", "by_user_and_code"), m.DropConstraint(&User{}, "age_checked"), m.AlterColumn(&Company{}, "Name"),
			m.CreateView("adults", gorm.ViewOption{Query: db.Model(&User{}).Select("id, email").Where("age > 17"), Replace: true}),
			m.RenameTable("languages", "tongues"))
	}},
	{"tables after them", structure},
	{"rows", func(db *gorm.DB) (any, error) {
		return rows(db, "SELECT id, email, name, age, balance::text, active, small, telephone, company_id FROM users ORDER BY id")
	}},
	{"drop", func(db *gorm.DB) (any, error) {
		m := db.Migrator()
		if err := errors.Join(m.DropView("adults"), m.DropTable("user_languages", &Order{}, "users", &Company{}, "tongues")); err != nil {
			return nil, err
		}
		tables, err := m.GetTables()
		return tables, errors.Join(err, db.Exec("DROP SCHEMA "+schema).Error)
	}},
}

func structure(db *gorm.DB) (any, error) {
	columns, err := rows(db, "SELECT table_name, column_name, data_type, udt_name, is_nullable, numeric_precision, character_maximum_length,"+
		" split_part(column_default, '::', 1) AS given FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY 1, 2")
	constraints, err2 := rows(db, "SELECT conrelid::regclass::text AS t, contype, conname FROM pg_constraint"+
		" WHERE connamespace = current_schema()::regnamespace AND conname NOT LIKE '%_pkey' ORDER BY 1, 2, 3")
	indexes, err3 := rows(db, "SELECT regexp_replace(regexp_replace(indexdef, '::[a-z]+', '', 'g'), '[()]', '', 'g') AS d FROM pg_indexes"+
		" WHERE schemaname = current_schema() AND indexname NOT LIKE '%_pkey' ORDER BY 1")
	return []any{columns, constraints, indexes}, errors.Join(err, err2, err3)
}
