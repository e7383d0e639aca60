package msg_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"jobq/core/fault"
	"jobq/core/msg"
)

func seed(f *testing.F) {
	files, err := filepath.Glob("testdata/wire/*.json")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
}

func FuzzDecodeTask(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		task, err := msg.DecodeTask(body)
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("DecodeTask(%q) = %v, want invalid", body, err)
			}
			return
		}
		again, err := msg.EncodeTask(task)
		if err != nil {
			t.Fatalf("EncodeTask of what was read from %q: %v", body, err)
		}
		second, err := msg.DecodeTask(again)
		if err != nil {
			t.Fatalf("DecodeTask(%q): %v", again, err)
		}
		third, err := msg.EncodeTask(second)
		if err != nil || string(third) != string(again) {
			t.Fatalf("writing it twice gives %q and %q (%v)", again, third, err)
		}
	})
}

func FuzzDecodeInbox(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		in, err := msg.DecodeInbox(body)
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("DecodeInbox(%q) = %v, want invalid", body, err)
			}
			return
		}
		again, err := encodeInbox(in)
		if err != nil {
			t.Fatalf("encoding what was read from %q: %v", body, err)
		}
		if _, err := msg.DecodeInbox(again); err != nil {
			t.Fatalf("DecodeInbox(%q): %v", again, err)
		}
	})
}

func FuzzDecodeRefs(f *testing.F) {
	f.Add([]byte(`{"s": ["a"], "i": {"b": "5", "c": null}, "n": ["d"]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		refs, err := msg.DecodeRefs(body)
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("DecodeRefs(%q) = %v, want invalid", body, err)
			}
			return
		}
		again, err := msg.DecodeRefs(msg.EncodeRefs(refs))
		if err != nil {
			t.Fatal(err)
		}
		if a, b := collect(refs), collect(again); !reflect.DeepEqual(a, b) {
			t.Fatalf("%q reads as %v, then as %v", body, a, b)
		}
	})
}

func collect(r msg.Refs) map[string]string {
	all := make(map[string]string)
	for parent, ref := range r.All("w") {
		all[parent] = ref
	}
	return all
}
