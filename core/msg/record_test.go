package msg_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jobq/core/fault"
	"jobq/core/msg"
)

func TestRecordRoundTrip(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, want := range map[string]msg.AttemptRecord{
		"held": {Start: 2, TTL: 5 * time.Minute, Crashes: 1, Holder: "host/1", StartedAt: at},
		"free": {Start: 1, TTL: time.Minute, Free: true},
		"ended by a worker": {Start: 1, Ended: &msg.Ended{
			Completion: &msg.Completion{Workflow: "w", Task: "t", Attempt: 1, ExitCode: new(1), EndedAt: at},
		}},
		"ended by a coordinator": {Ended: &msg.Ended{ByCoordinator: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := msg.EncodeRecord(want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := msg.DecodeRecord(body)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("round trip (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := msg.DecodeRecord([]byte("x")); !fault.Is(err, fault.Corrupt) {
		t.Errorf("DecodeRecord of no JSON = %v, want corrupt", err)
	}
}
