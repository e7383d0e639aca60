package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// rule says what one package (or every package below a path that ends in
// "/...") may import besides the standard library.
type rule struct {
	pkg string
	// ours may be imported; a trailing "/..." allows everything below.
	ours []string
	// others are modules outside.
	others []string
	// banned are packages of the standard library that would break the promise
	// of the package, each with the reason; a trailing "/..." bans everything below.
	banned map[string]string
}

var pure = map[string]string{
	"context":       "a pure package waits for nothing",
	"net/...":       "a pure package knows no network",
	"os/...":        "a pure package knows no machine",
	"syscall":       "a pure package knows no machine",
	"log/...":       "a pure package tells in values",
	"math/rand/...": "a pure package is deterministic",
}

var engineBans = withBans(pure, map[string]string{
	"sync/...": "a Run belongs to one goroutine",
})

func withBans(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// rules is HOUSE §5. A package that matches none fails the test.
func rules() []rule {
	return []rule{
		{pkg: "core/fault"},
		{pkg: "core/sched"},
		{pkg: "core/dag", ours: []string{"core/fault"}, banned: pure},
		{pkg: "core/cond", ours: []string{"core/fault"}, others: []string{"github.com/expr-lang/expr"}, banned: pure},
		{pkg: "core/state", ours: []string{"core/fault", "core/dag"}, banned: pure},
		{pkg: "core/msg", ours: []string{"core/fault", "core/dag"}, banned: pure},
		{pkg: "core/spec", ours: []string{"core/dag", "core/cond", "core/fault"}, others: []string{"gopkg.in/yaml.v3"}},
		{pkg: "core/engine", ours: []string{"core/dag", "core/state", "core/msg", "core/fault"}, banned: engineBans},
		{pkg: "core/port", ours: []string{"core/state", "core/msg", "core/fault"}},
		{pkg: "core/coord", ours: []string{"core/..."}},
		{pkg: "store", ours: []string{"core/port", "core/fault", "core/dag", "core/sched", "store/memory", "store/local", "store/azstorage", "store/azbus", "store/wrap"},
			others: []string{"github.com/Azure/azure-sdk-for-go/sdk/azcore", "github.com/Azure/azure-sdk-for-go/sdk/azidentity"}},
		{pkg: "store/memory", ours: storeCore()},
		{pkg: "store/local", ours: storeCore(), others: []string{"modernc.org/sqlite", "golang.org/x/sys"}},
		{pkg: "store/azbus", ours: storeCore(), others: []string{
			"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus", "github.com/Azure/azure-sdk-for-go/sdk/azcore", "github.com/Azure/go-amqp",
		}},
		{pkg: "store/azstorage", ours: storeCore(), others: []string{
			"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob", "github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue",
			"github.com/Azure/azure-sdk-for-go/sdk/data/aztables", "github.com/Azure/azure-sdk-for-go/sdk/azcore",
		}},
		{pkg: "store/wrap/...", ours: []string{"core/port", "core/fault", "core/sched"}},
		{pkg: "store/storetest", ours: storeCore(), others: []string{"github.com/google/go-cmp", "pgregory.net/rapid"}},
		{pkg: "worker", ours: []string{"core/msg", "core/port", "core/fault", "core/sched", "worker/..."}},
		{pkg: "worker/protocol", ours: []string{"core/msg", "core/port", "core/fault", "core/sched"}},
		{pkg: "worker/taskapi", ours: []string{"core/fault", "core/msg"}},
		{pkg: "worker/proc/proctest", ours: []string{"core/fault"}},
		{pkg: "worker/proc", ours: []string{"core/fault"}, others: []string{"golang.org/x/sys"}},
		{pkg: "worker/guard", ours: []string{"core/fault", "worker/proc"}, others: []string{"golang.org/x/sys"}},
		{pkg: "worker/logs", ours: []string{"core/fault"}, others: []string{"golang.org/x/sys"}},
		{pkg: "internal/local", ours: []string{"core/...", "worker/...", "store", "store/local", "store/wrap"}},
		{pkg: "internal/config", ours: []string{"core/fault"}, others: []string{"gopkg.in/yaml.v3"}},
		{pkg: "internal/obs", ours: []string{"core/fault"}},
		{pkg: "internal/testkit", ours: []string{"core/...", "store/..."}},
		{pkg: "internal/sim/...", ours: []string{"core/...", "store/...", "worker/...", "internal/testkit", "internal/sim/..."}},
		{pkg: "internal/archtest"},
		{pkg: "internal/azurite", others: []string{"golang.org/x/sys"}},
		{pkg: "internal/e2e"},
		{pkg: "internal/speed", ours: []string{"core/...", "store/...", "internal/azurite"}},
		{pkg: "internal/busstand/amqp"},
		{pkg: "internal/busstand", ours: []string{"internal/busstand/amqp"}},
		{pkg: "internal/cli", ours: []string{"core/...", "store", "worker/...", "internal/local", "internal/config", "internal/obs", "internal/sim"},
			others: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/jedib0t/go-pretty/v6", "golang.org/x/term", "golang.org/x/sys"}},
		{pkg: "internal/reaper", others: []string{"golang.org/x/sys"}},
		{pkg: "cmd/jobq", ours: []string{"internal/cli", "internal/reaper", "worker/...", "core/..."}},
	}
}

func storeCore() []string {
	return []string{"core/port", "core/msg", "core/state", "core/fault"}
}

const module = "jobq/"

type listed struct {
	ImportPath string
	Standard   bool
	Imports    []string
}

func list(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Standard,Imports", "jobq/...").Output()
	if err != nil {
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			t.Fatalf("go list: %v\n%s", err, e.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("go list printed what is not JSON: %v", err)
		}
		all = append(all, p)
	}
}

func matches(pattern, path string) bool {
	if below, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == below || strings.HasPrefix(path, below+"/")
	}
	return path == pattern
}

func TestEveryImportIsAllowed(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for _, p := range list(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		at := slices.IndexFunc(rules(), func(r rule) bool { return matches(r.pkg, path) })
		if at < 0 {
			t.Errorf("package %s is in no rule: say in rules() what it may import", path)
			continue
		}
		r := rules()[at]
		used[r.pkg] = true
		for _, imported := range p.Imports {
			if complaint := r.judge(imported); complaint != "" {
				t.Errorf("%s imports %s: %s", path, imported, complaint)
			}
		}
	}
	for _, r := range rules() {
		if !used[r.pkg] {
			t.Errorf("rule for %s is for a package that does not exist", r.pkg)
		}
	}
}

// judge returns what is wrong with an import, empty for nothing.
func (r rule) judge(imported string) string {
	if ours, ok := strings.CutPrefix(imported, module); ok {
		if slices.ContainsFunc(r.ours, func(p string) bool { return matches(p, ours) }) {
			return ""
		}
		return "not among the packages of ours that it may import"
	}
	for pattern, reason := range r.banned {
		if matches(pattern, imported) {
			return reason
		}
	}
	first, _, _ := strings.Cut(imported, "/")
	if !strings.Contains(first, ".") {
		return ""
	}
	if slices.ContainsFunc(r.others, func(m string) bool { return matches(m+"/...", imported) }) {
		return ""
	}
	return "not among the modules that it may import"
}

// TestTestingStaysOutOfPrograms keeps what is for tests out of what users run.
func TestTestingStaysOutOfPrograms(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", "jobq/cmd/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for _, path := range strings.Fields(string(out)) {
		for _, banned := range []string{"testing", "jobq/store/storetest", "jobq/internal/testkit", "pgregory.net/rapid", "github.com/google/go-cmp/cmp"} {
			if path == banned {
				t.Errorf("a program depends on %s", path)
			}
		}
	}
}
