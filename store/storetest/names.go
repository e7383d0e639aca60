package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"jobq/core/fault"
	"jobq/core/port"
)

// oddNames are all different, whatever a file system or a table thinks of them.
func oddNames() []string {
	return []string{
		"a", "A", "é", "e\u0301", "日本語のタスク", "🦆", " ", " a", "a ", "a b", "a\tb", "a\\b", "a'b", `a"b`, "a%b", "a%25b", "%", "%2F",
		"a#b", "a?b", "a*b", "a:b", "a+b", "a|b", "<a>", ".", "..", "...", ".a", "a.", "../../etc/passwd", "/", "//", "/a", "a/", "a/b", "a//b",
		"a/./b", "a/../b", "~", "-", "-rf", "nul", "con", "a.log", "a.log/b", "b.log/c.log", "a\u202eb", "a\u00a0b",
		strings.Repeat("x", 256), strings.Repeat("x", 255), strings.Repeat("y", 300) + "/z", strings.Repeat(" ", 256), strings.Repeat("é", 128),
		strings.Repeat("🦆", 64), strings.Repeat("/", 100), strings.Repeat("../", 80), strings.Repeat("%", 256),
	}
}

var nameCases = []testCase{
	{"odd task names have records of their own", func(t *testing.T, e env) {
		ctx := t.Context()
		for _, name := range oddNames() {
			_, err := e.store.Records.Create(ctx, key(name), port.Record{Body: []byte(name)})
			ok(t, err, fmt.Sprintf("Create of %q", name))
		}
		for _, name := range oddNames() {
			got, err := e.store.Records.Read(ctx, key(name))
			ok(t, err, fmt.Sprintf("Read of %q", name))
			same(t, string(got.Body), name, fmt.Sprintf("Read of %q", name))
		}
	}},
	{"odd output names have values of their own", func(t *testing.T, e env) {
		ctx := t.Context()
		var want []string
		for _, name := range oddNames() {
			name := "w/" + name
			ok(t, e.store.Outputs.Put(ctx, name, []byte(name)), fmt.Sprintf("Put of %q", name))
			want = append(want, name)
		}
		slices.Sort(want)
		same(t, collect(t, e.store.Outputs.List(ctx, "w/"), "List"), want, "List")
		for _, name := range want {
			got, err := e.store.Outputs.Get(ctx, name)
			ok(t, err, fmt.Sprintf("Get of %q", name))
			same(t, string(got), name, fmt.Sprintf("Get of %q", name))
		}
	}},
	{"odd stream names have logs of their own", func(t *testing.T, e env) {
		ctx := t.Context()
		var want []string
		for _, name := range oddNames() {
			name := "w/" + name + "/1.1"
			ok(t, e.store.TaskLogs.Append(ctx, name, []byte(name)), fmt.Sprintf("Append to %q", name))
			want = append(want, name)
		}
		slices.Sort(want)
		same(t, collect(t, e.store.TaskLogs.Names(ctx, "w/"), "Names"), want, "Names")
		for _, name := range want {
			got, err := e.store.TaskLogs.Read(ctx, name, 0, 10_000)
			ok(t, err, fmt.Sprintf("Read of %q", name))
			same(t, string(got), name, fmt.Sprintf("Read of %q", name))
		}
		ok(t, e.store.TaskLogs.DeletePrefix(ctx, "w/", nil), "DeletePrefix")
		same(t, collect(t, e.store.TaskLogs.Names(ctx, ""), "Names"), []string(nil), "Names after DeletePrefix")
	}},
	{"streams can be named by odd names alone", func(t *testing.T, e env) {
		ctx := t.Context()
		want := oddNames()
		for _, name := range want {
			ok(t, e.store.TaskLogs.Append(ctx, name, []byte(name)), fmt.Sprintf("Append to %q", name))
		}
		slices.Sort(want)
		same(t, collect(t, e.store.TaskLogs.Names(ctx, ""), "Names"), want, "Names")
	}},
	{"odd texts come back in a row, a message and a member", func(t *testing.T, e env) {
		ctx, text := t.Context(), strings.Join(oddNames(), "\n")
		r := row("w", 0)
		r.Error, r.Name = text, text
		project(t, e.store.Index, r)
		got, err := e.store.Index.Get(ctx, "w")
		ok(t, err, "Get")
		same(t, got.Row, r, "Get")
		q := e.open(t, "cpu")
		send(t, q, port.Message{ID: "w/" + oddNames()[4] + "/1", Body: []byte(text)})
		d := receiveOne(t, q, longLock)
		same(t, string(d.Body), text, "the body of the delivery")
		if !q.Props().AssignsID {
			same(t, d.ID, "w/"+oddNames()[4]+"/1", "the id of the delivery")
		}
	}},
	{"ids that differ in case alone are different workflows", func(t *testing.T, e env) {
		ctx := t.Context()
		for _, wf := range []string{"Run", "run"} {
			_, err := e.store.States.Create(ctx, wf, []byte(wf))
			ok(t, err, "Create of "+wf)
		}
		for _, wf := range []string{"Run", "run"} {
			doc, err := e.store.States.Load(ctx, wf, "")
			ok(t, err, "Load of "+wf)
			same(t, string(doc.Body), wf, "Load of "+wf)
		}
		_, err := e.store.States.Load(ctx, "RUN", "")
		fails(t, err, fault.NotFound, "Load of RUN")
	}},
}
