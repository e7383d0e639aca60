package azstorage_test

import (
	"bytes"
	"testing"
	"time"

	"jobq/core/port"
)

// The benchmarks show what the driver adds to the emulator, whose one thread is
// the limit: compare with the figures of the bare client, not with Azure.

func BenchmarkSave100KB(b *testing.B) {
	a := newAccount(b)
	s, body := a.open(a.options()), make([]byte, 100<<10)
	tag, err := s.States.Create(b.Context(), "w", body)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if tag, err = s.States.Save(b.Context(), "w", body, tag); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoadUnchanged(b *testing.B) {
	a := newAccount(b)
	s := a.open(a.options())
	tag, err := s.States.Create(b.Context(), "w", make([]byte, 100<<10))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if doc, err := s.States.Load(b.Context(), "w", tag); err != nil || !doc.Unchanged {
			b.Fatalf("Load = unchanged %v, error %v", doc.Unchanged, err)
		}
	}
}

// BenchmarkMessages is 32 messages of 1 KiB sent, received at once and acknowledged.
func BenchmarkMessages(b *testing.B) {
	a := newAccount(b)
	q := a.cpu(a.open(a.options()))
	messages := make([]port.Message, 32)
	for i := range messages {
		messages[i].Body = bytes.Repeat([]byte("x"), 1024)
	}
	for b.Loop() {
		if errs := q.Send(b.Context(), messages); errs != nil {
			b.Fatal(errs)
		}
		ds, err := q.Receive(b.Context(), port.ReceiveOptions{Max: 32, Lock: time.Hour})
		if err != nil || len(ds) != 32 {
			b.Fatalf("Receive = %d messages, error %v", len(ds), err)
		}
		if errs := q.Acknowledge(b.Context(), ds); errs != nil {
			b.Fatal(errs)
		}
	}
	b.ReportMetric(float64(32*b.N)/b.Elapsed().Seconds(), "messages/s")
}

func BenchmarkProject(b *testing.B) {
	a := newAccount(b)
	s := a.open(a.options())
	row := running("w", 1)
	tag, err := s.Index.Project(b.Context(), row, "")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		row.StateVersion++
		if tag, err = s.Index.Project(b.Context(), row, tag); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRecordBeat(b *testing.B) {
	a := newAccount(b)
	s := a.open(a.options())
	r := port.Record{Owner: "me", Body: []byte(`{"start":1}`)}
	tag, err := s.Records.Create(b.Context(), key, r)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if tag, err = s.Records.Change(b.Context(), key, r, tag); err != nil {
			b.Fatal(err)
		}
	}
}
