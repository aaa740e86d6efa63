module checks

go 1.22

require (
	gorm.io/driver/postgres v1.6.0
	gorm.io/gorm v1.30.5
)
