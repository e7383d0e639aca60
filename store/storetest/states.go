package storetest

import (
	"bytes"
	"context"
	"testing"

	"jobq/core/fault"
	"jobq/core/port"
)

var stateCases = []testCase{
	{"a definition is stored once and never changed", func(t *testing.T, e env) {
		ctx, states := t.Context(), e.store.States
		ok(t, states.CreateDefinition(ctx, "w", []byte("first")), "CreateDefinition")
		fails(t, states.CreateDefinition(ctx, "w", []byte("first")), fault.Exists, "CreateDefinition of the same again")
		fails(t, states.CreateDefinition(ctx, "w", []byte("second")), fault.Exists, "CreateDefinition of another")
		got, err := states.Definition(ctx, "w")
		ok(t, err, "Definition")
		same(t, string(got), "first", "Definition")
	}},
	{"an absent definition is not found and its deletion is no error", func(t *testing.T, e env) {
		ctx, states := t.Context(), e.store.States
		_, err := states.Definition(ctx, "w")
		fails(t, err, fault.NotFound, "Definition")
		ok(t, states.DeleteDefinition(ctx, "w"), "DeleteDefinition")
		ok(t, states.CreateDefinition(ctx, "w", nil), "CreateDefinition")
		ok(t, states.DeleteDefinition(ctx, "w"), "DeleteDefinition")
		_, err = states.Definition(ctx, "w")
		fails(t, err, fault.NotFound, "Definition after DeleteDefinition")
		ok(t, states.CreateDefinition(ctx, "w", []byte("next life")), "CreateDefinition after DeleteDefinition")
	}},
	{"a state is created once", func(t *testing.T, e env) {
		ctx, states := t.Context(), e.store.States
		_, err := states.Load(ctx, "w", "")
		fails(t, err, fault.NotFound, "Load before Create")
		tag, err := states.Create(ctx, "w", []byte("one"))
		ok(t, err, "Create")
		if tag == "" {
			t.Error("Create returned the empty tag")
		}
		_, err = states.Create(ctx, "w", []byte("two"))
		fails(t, err, fault.Exists, "Create again")
		doc, err := states.Load(ctx, "w", "")
		ok(t, err, "Load")
		same(t, doc, port.Document{Body: []byte("one"), Tag: tag}, "Load")
	}},
	{"a save needs the newest tag", func(t *testing.T, e env) {
		ctx, states := t.Context(), e.store.States
		first, err := states.Create(ctx, "w", []byte("one"))
		ok(t, err, "Create")
		second, err := states.Save(ctx, "w", []byte("two"), first)
		ok(t, err, "Save at the newest tag")
		if second == first {
			t.Errorf("Save returned tag %q again", second)
		}
		for call, tag := range map[string]port.Tag{"stale": first, "empty": "", "foreign": "no-such-tag"} {
			_, err = states.Save(ctx, "w", []byte("three"), tag)
			fails(t, err, fault.Conflict, "Save at a "+call+" tag")
		}
		doc, err := states.Load(ctx, "w", first)
		ok(t, err, "Load")
		same(t, doc, port.Document{Body: []byte("two"), Tag: second}, "Load after refused saves")
	}},
	{"a save of equal bytes still makes a new tag", func(t *testing.T, e env) {
		ctx, states := t.Context(), e.store.States
		first, err := states.Create(ctx, "w", []byte("one"))
		ok(t, err, "Create")
		second, err := states.Save(ctx, "w", []byte("one"), first)
		ok(t, err, "Save")
		_, err = states.Save(ctx, "w", []byte("one"), first)
		fails(t, err, fault.Conflict, "Save at the tag before")
		if first == second {
			t.Errorf("Save of equal bytes returned tag %q again", first)
		}
	}},
	{"a save of an absent state is a conflict", func(t *testing.T, e env) {
		_, err := e.store.States.Save(t.Context(), "w", []byte("one"), "tag")
		fails(t, err, fault.Conflict, "Save")
	}},
	{"a load at the known tag transfers nothing", func(t *testing.T, e env) {
		ctx, states := t.Context(), e.store.States
		tag, err := states.Create(ctx, "w", []byte("one"))
		ok(t, err, "Create")
		doc, err := states.Load(ctx, "w", tag)
		ok(t, err, "Load")
		same(t, doc, port.Document{Tag: tag, Unchanged: true}, "Load at the known tag")
	}},
	{"an empty state is a state", func(t *testing.T, e env) {
		ctx, states := t.Context(), e.store.States
		tag, err := states.Create(ctx, "w", nil)
		ok(t, err, "Create of no bytes")
		doc, err := states.Load(ctx, "w", "")
		ok(t, err, "Load")
		same(t, doc, port.Document{Tag: tag}, "Load")
		_, err = states.Save(ctx, "w", []byte{}, tag)
		ok(t, err, "Save of no bytes")
	}},
	{"a large state comes back byte for byte", func(t *testing.T, e env) {
		ctx, states := t.Context(), e.store.States
		large := bytes.Repeat([]byte("0123456789abcdef\x00\xff"), 60_000)
		if limit := e.store.Props.MaxState; limit > 0 && limit < len(large) {
			large = large[:limit]
		}
		tag, err := states.Create(ctx, "w", large)
		ok(t, err, "Create")
		doc, err := states.Load(ctx, "w", "")
		ok(t, err, "Load")
		if !bytes.Equal(doc.Body, large) || doc.Tag != tag {
			t.Errorf("Load gave %d bytes with tag %q, want the %d bytes stored with %q", len(doc.Body), doc.Tag, len(large), tag)
		}
	}},
	{"a state above the limit is refused", func(t *testing.T, e env) {
		ctx, states, limit := t.Context(), e.store.States, e.store.Props.MaxState
		if limit == 0 || limit > 64<<20 {
			t.Skip("the driver declares no limit that a test can reach")
		}
		_, err := states.Create(ctx, "w", make([]byte, limit+1))
		fails(t, err, fault.TooLarge, "Create above the limit")
		tag, err := states.Create(ctx, "w", make([]byte, limit))
		ok(t, err, "Create at the limit")
		_, err = states.Save(ctx, "w", make([]byte, limit+1), tag)
		fails(t, err, fault.TooLarge, "Save above the limit")
	}},
	{"bytes are owned by the caller on both ways", func(t *testing.T, e env) {
		ctx, states := t.Context(), e.store.States
		body := []byte("one")
		_, err := states.Create(ctx, "w", body)
		ok(t, err, "Create")
		ok(t, states.CreateDefinition(ctx, "w", body), "CreateDefinition")
		copy(body, "bad")
		doc, err := states.Load(ctx, "w", "")
		ok(t, err, "Load")
		copy(doc.Body, "bad")
		def, err := states.Definition(ctx, "w")
		ok(t, err, "Definition")
		copy(def, "bad")
		doc, err = states.Load(ctx, "w", "")
		ok(t, err, "Load")
		same(t, string(doc.Body), "one", "Load after the caller changed its slices")
		def, err = states.Definition(ctx, "w")
		ok(t, err, "Definition")
		same(t, string(def), "one", "Definition after the caller changed its slices")
	}},
	{"another process sees a save at once", func(t *testing.T, e env) {
		ctx, other := t.Context(), e.Open()
		tag, err := e.store.States.Create(ctx, "w", []byte("one"))
		ok(t, err, "Create")
		next, err := other.States.Save(ctx, "w", []byte("two"), tag)
		ok(t, err, "Save by the other process")
		doc, err := e.store.States.Load(ctx, "w", tag)
		ok(t, err, "Load")
		same(t, doc, port.Document{Body: []byte("two"), Tag: next}, "Load after the save of the other process")
	}},
	{"an ended context stops every call", func(t *testing.T, e env) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := e.store.States.Load(ctx, "w", "")
		fails(t, err, fault.Canceled, "Load")
		_, err = e.store.States.Create(ctx, "w", nil)
		fails(t, err, fault.Canceled, "Create")
		_, err = e.store.States.Load(t.Context(), "w", "")
		fails(t, err, fault.NotFound, "Load after a canceled Create")
	}},
}
