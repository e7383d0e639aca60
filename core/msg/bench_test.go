package msg_test

import (
	"testing"

	"jobq/core/msg"
)

func BenchmarkTask(b *testing.B) {
	t := msg.Task{
		ID: "fan/leaf-0001/1", Workflow: "fan", Name: "leaf-0001", Attempt: 1, Prefix: "local/default",
		Kwargs: kwargs("cmd", `"true"`), Upstream: &msg.Refs{None: []string{"root"}},
	}
	body, err := msg.EncodeTask(t)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			if _, err := msg.EncodeTask(t); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		for b.Loop() {
			if _, err := msg.DecodeTask(body); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkInbox(b *testing.B) {
	body := golden(b, "completion_ours")
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := msg.DecodeInbox(body); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := msg.DecodeInboxAsJSON(body); err != nil {
				b.Fatal(err)
			}
		}
	})
}
