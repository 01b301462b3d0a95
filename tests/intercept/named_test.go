// SPDX-FileCopyrightText: The gpushare authors
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/gpushare/gpushare/simgpu/api"
)

// The test that a row names runs over a driver that has the row's function: over one
// without it, it would pass with or without our wrapper.
func TestNamedTestsHaveTheirFunctions(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root(t), "docs/reference/coverage.md"))
	if err != nil {
		t.Fatal(err)
	}
	words := wordsOfTests(t)
	var has, newest []string
	for _, soname := range []string{"libcuda.so.1", "libnvidia-ml.so.1"} {
		has = append(has, exported(t, filepath.Join(root(t), "build/simgpu/lib", directory(api.Default.Branch), soname))...)
		newest = append(newest, exported(t, filepath.Join(root(t), "build/simgpu/lib/newest", soname))...)
	}
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (?:enforced|viewed|refused) \\| .*`tests/intercept (Test\\w+)` \\|$").FindAllStringSubmatch(string(page), -1)
	newer := 0
	for _, m := range rows {
		symbol, test := m[1], m[2]
		if slices.Contains(has, symbol) {
			continue // of the driver that is there without another word
		}
		newer++
		w := words(test)
		if !w["simulateGPUs"] || w["standIn"] || w["standInNVML"] || w["withNames"] || w["onEveryDriver"] {
			continue
		}
		if !w["newest"] || !slices.Contains(newest, symbol) {
			t.Errorf("%s is not in the driver over which %s runs", symbol, test)
		}
	}
	t.Logf("%d rows, %d newer than driver %s", len(rows), newer, api.Default.Branch)
	if len(rows) < 180 {
		t.Errorf("%d rows name a test", len(rows))
	}
}

// wordsOfTests reads the code of this package. The function that it returns gives the
// functions that one calls, without methods, and its texts, and those of all that it
// calls here.
func wordsOfTests(t *testing.T) func(function string) map[string]bool {
	t.Helper()
	own := map[string]map[string]bool{}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, is := d.(*ast.FuncDecl)
			if !is || fn.Recv != nil {
				continue
			}
			set := map[string]bool{}
			ast.Inspect(fn, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if name, is := n.Fun.(*ast.Ident); is {
						set[name.Name] = true
					}
				case *ast.BasicLit:
					if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
						set[text] = true
					}
				}
				return true
			})
			own[fn.Name.Name] = set
		}
	}
	return func(function string) map[string]bool {
		all, next := map[string]bool{}, []string{function}
		for len(next) > 0 {
			f := next[0]
			next = next[1:]
			for word := range own[f] {
				if !all[word] && own[word] != nil {
					next = append(next, word)
				}
				all[word] = true
			}
		}
		return all
	}
}
