package storetest

import (
	"bytes"
	"slices"
	"testing"

	"jobq/core/fault"
	"jobq/core/port"
)

var blobCases = []testCase{
	{"a blob is stored once and never changed", func(t *testing.T, e env) {
		ctx, blobs := t.Context(), e.store.Outputs
		_, err := blobs.Get(ctx, "w/a.json")
		fails(t, err, fault.NotFound, "Get before Put")
		ok(t, blobs.Put(ctx, "w/a.json", []byte("one")), "Put")
		fails(t, blobs.Put(ctx, "w/a.json", []byte("one")), fault.Exists, "Put of the same again")
		fails(t, blobs.Put(ctx, "w/a.json", []byte("two")), fault.Exists, "Put of another")
		got, err := blobs.Get(ctx, "w/a.json")
		ok(t, err, "Get")
		same(t, string(got), "one", "Get")
	}},
	{"small, large and empty blobs come back byte for byte", func(t *testing.T, e env) {
		ctx, blobs := t.Context(), e.store.Outputs
		for name, size := range map[string]int{"empty": 0, "one": 1, "small": 4096, "large": 3 << 20} {
			body := bytes.Repeat([]byte{0, 1, 254, 255, 'x'}, size/5+1)[:size]
			ok(t, blobs.Put(ctx, name, body), "Put of "+name)
			fails(t, blobs.Put(ctx, name, body), fault.Exists, "Put of "+name+" again")
			got, err := blobs.Get(ctx, name)
			ok(t, err, "Get of "+name)
			if !bytes.Equal(got, body) {
				t.Errorf("Get of %s gave %d bytes that differ from the %d stored", name, len(got), size)
			}
		}
	}},
	{"a blob above the limit is refused", func(t *testing.T, e env) {
		limit := e.store.Props.MaxBlob
		if limit == 0 || limit > 64<<20 {
			t.Skip("the driver declares no limit that a test can reach")
		}
		fails(t, e.store.Outputs.Put(t.Context(), "b", make([]byte, limit+1)), fault.TooLarge, "Put above the limit")
		ok(t, e.store.Outputs.Put(t.Context(), "b", make([]byte, limit)), "Put at the limit")
	}},
	{"a listing is ascending and below its prefix", func(t *testing.T, e env) {
		ctx, blobs := t.Context(), e.store.Outputs
		for _, name := range []string{"w/b", "w/a/1", "w2/a", "w/a", "W/a", "w/é"} {
			ok(t, blobs.Put(ctx, name, nil), "Put")
		}
		for prefix, want := range map[string][]string{
			"":     {"W/a", "w/a", "w/a/1", "w/b", "w/é", "w2/a"},
			"w/":   {"w/a", "w/a/1", "w/b", "w/é"},
			"w/a":  {"w/a", "w/a/1"},
			"none": nil,
		} {
			same(t, collect(t, blobs.List(ctx, prefix), "List"), want, "List of "+prefix)
		}
	}},
	{"a listing can be broken off", func(t *testing.T, e env) {
		ctx, blobs := t.Context(), e.store.Outputs
		for _, name := range []string{"a", "b", "c"} {
			ok(t, blobs.Put(ctx, name, nil), "Put")
		}
		var got []string
		for name, err := range blobs.List(ctx, "") {
			ok(t, err, "List")
			if got = append(got, name); len(got) == 2 {
				break
			}
		}
		same(t, got, []string{"a", "b"}, "names before the break")
	}},
	{"a listing allows other calls while it runs", func(t *testing.T, e env) {
		ctx, blobs := t.Context(), e.store.Outputs
		for _, name := range []string{"a", "b", "c"} {
			ok(t, blobs.Put(ctx, name, []byte(name)), "Put")
		}
		for name, err := range blobs.List(ctx, "") {
			ok(t, err, "List")
			got, err := blobs.Get(ctx, name)
			ok(t, err, "Get while listing")
			same(t, string(got), name, "Get while listing")
			ok(t, blobs.Put(ctx, "copy of "+name, nil), "Put while listing")
		}
	}},
	{"deleting by prefix leaves the rest and frees the names", func(t *testing.T, e env) {
		ctx, blobs := t.Context(), e.store.Outputs
		large := make([]byte, 2<<20)
		for _, name := range []string{"w/a", "w/b", "w2/a"} {
			ok(t, blobs.Put(ctx, name, large), "Put")
		}
		ok(t, blobs.DeletePrefix(ctx, "w/", func(name string) bool { return name == "w/b" }), "DeletePrefix")
		same(t, collect(t, blobs.List(ctx, ""), "List"), []string{"w/b", "w2/a"}, "List after DeletePrefix that keeps w/b")
		got, err := blobs.Get(ctx, "w/b")
		ok(t, err, "Get of what was kept")
		same(t, len(got), len(large), "bytes of what was kept")
		ok(t, blobs.DeletePrefix(ctx, "w/", nil), "DeletePrefix")
		ok(t, blobs.DeletePrefix(ctx, "w/", nil), "DeletePrefix again")
		same(t, collect(t, blobs.List(ctx, ""), "List"), []string{"w2/a"}, "List after DeletePrefix")
		_, err = blobs.Get(ctx, "w/a")
		fails(t, err, fault.NotFound, "Get after DeletePrefix")
		ok(t, blobs.Put(ctx, "w/a", []byte("next life")), "Put after DeletePrefix")
	}},
	{"bytes are owned by the caller on both ways", func(t *testing.T, e env) {
		ctx, blobs := t.Context(), e.store.Outputs
		body := []byte("one")
		ok(t, blobs.Put(ctx, "b", body), "Put")
		copy(body, "bad")
		got, err := blobs.Get(ctx, "b")
		ok(t, err, "Get")
		copy(got, "bad")
		got, err = blobs.Get(ctx, "b")
		ok(t, err, "Get")
		same(t, string(got), "one", "Get after the caller changed its slices")
	}},
}

// bothLogs runs a case on the task logs and on the events.
func bothLogs(test func(t *testing.T, e env, l port.Log)) func(*testing.T, env) {
	return func(t *testing.T, e env) {
		test(t, e, e.store.TaskLogs)
		test(t, e, e.store.Events)
	}
}

var logCases = []testCase{
	{"a stream grows at its end", bothLogs(func(t *testing.T, e env, l port.Log) {
		ctx := t.Context()
		for _, data := range []string{"one\n", "", "two\n"} {
			ok(t, l.Append(ctx, "w/a", []byte(data)), "Append")
		}
		got, err := l.Read(ctx, "w/a", 0, 100)
		ok(t, err, "Read")
		same(t, string(got), "one\ntwo\n", "Read")
		size, err := l.Size(ctx, "w/a")
		ok(t, err, "Size")
		same(t, size, int64(8), "Size")
	})},
	{"an absent stream reads as empty", bothLogs(func(t *testing.T, e env, l port.Log) {
		got, err := l.Read(t.Context(), "absent", 0, 10)
		ok(t, err, "Read")
		same(t, len(got), 0, "bytes of Read")
		size, err := l.Size(t.Context(), "absent")
		ok(t, err, "Size")
		same(t, size, int64(0), "Size")
	})},
	{"a part is read from any offset", bothLogs(func(t *testing.T, e env, l port.Log) {
		ctx := t.Context()
		ok(t, l.Append(ctx, "w/a", []byte("0123456789")), "Append")
		for _, c := range []struct {
			offset int64
			most   int
			want   string
		}{{0, 4, "0123"}, {4, 4, "4567"}, {8, 4, "89"}, {10, 4, ""}, {99, 4, ""}, {3, 0, ""}} {
			got, err := l.Read(ctx, "w/a", c.offset, c.most)
			ok(t, err, "Read")
			if string(got) != c.want {
				t.Errorf("Read(%d, %d) = %q, want %q", c.offset, c.most, got, c.want)
			}
		}
	})},
	{"names are ascending and below their prefix", bothLogs(func(t *testing.T, e env, l port.Log) {
		ctx := t.Context()
		for _, name := range []string{"w/b/1.1", "w/a/1.1", "w/a", "w2/a", "w/a/1.2", "w/a.log/x", "w/a%2F1.1"} {
			ok(t, l.Append(ctx, name, []byte("x")), "Append")
		}
		for prefix, want := range map[string][]string{
			"w/":    {"w/a", "w/a%2F1.1", "w/a.log/x", "w/a/1.1", "w/a/1.2", "w/b/1.1"},
			"w/a/1": {"w/a/1.1", "w/a/1.2"},
			"w/a":   {"w/a", "w/a%2F1.1", "w/a.log/x", "w/a/1.1", "w/a/1.2"},
			"w2":    {"w2/a"},
			"none/": nil,
		} {
			same(t, collect(t, l.Names(ctx, prefix), "Names"), want, "Names of "+prefix)
		}
	})},
	{"deleting by prefix leaves the rest and frees the names", bothLogs(func(t *testing.T, e env, l port.Log) {
		ctx := t.Context()
		for _, name := range []string{"w/a/1.1", "w/a/2.1", "w/b", "w2/a"} {
			ok(t, l.Append(ctx, name, []byte("x")), "Append")
		}
		ok(t, l.DeletePrefix(ctx, "w/a/1", nil), "DeletePrefix")
		same(t, collect(t, l.Names(ctx, ""), "Names"), []string{"w/a/2.1", "w/b", "w2/a"}, "Names after DeletePrefix")
		ok(t, l.DeletePrefix(ctx, "w/", func(name string) bool { return name == "w/b" }), "DeletePrefix")
		same(t, collect(t, l.Names(ctx, ""), "Names"), []string{"w/b", "w2/a"}, "Names after DeletePrefix that keeps w/b")
		ok(t, l.DeletePrefix(ctx, "w/", nil), "DeletePrefix")
		ok(t, l.DeletePrefix(ctx, "w/", nil), "DeletePrefix again")
		same(t, collect(t, l.Names(ctx, ""), "Names"), []string{"w2/a"}, "Names after DeletePrefix")
		ok(t, l.Append(ctx, "w/a/1.1", []byte("new")), "Append after DeletePrefix")
		got, err := l.Read(ctx, "w/a/1.1", 0, 100)
		ok(t, err, "Read")
		same(t, string(got), "new", "Read after DeletePrefix")
	})},
	{"events and task logs are apart", func(t *testing.T, e env) {
		ok(t, e.store.Events.Append(t.Context(), "w", []byte("event")), "Append")
		got := slices.Concat(collect(t, e.store.TaskLogs.Names(t.Context(), ""), "Names"), collect(t, e.store.Outputs.List(t.Context(), ""), "List"))
		same(t, len(got), 0, "task logs and outputs after an event")
	}},
}
