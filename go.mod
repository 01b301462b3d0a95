module github.com/gpushare/gpushare

go 1.26
