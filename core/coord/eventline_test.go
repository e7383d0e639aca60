package coord_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"jobq/core/coord"
	"jobq/core/state"
)

// asJSON returns what encoding/json writes of m.
func asJSON(m *coord.Move) (string, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(m)
	return string(bytes.TrimSuffix(buf.Bytes(), []byte("\n"))), err
}

func TestEventLinesAreThoseOfJSON(t *testing.T) {
	t.Parallel()
	full := coord.Move{
		Version: 3, Time: time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC), Task: "a", From: "running", To: "failed",
		Cause: state.CauseExhausted, Attempt: 2, Reason: "exit 3", Seconds: 1.25,
		Exit: &state.Exit{Code: 3, Known: true, Signal: "SIGTERM", Word: "exited", Worker: "vm-1:2", Start: 2},
	}
	for _, v := range []any{full, *full.Exit} {
		for i := range reflect.TypeOf(v).NumField() {
			if reflect.ValueOf(v).Field(i).IsZero() {
				t.Errorf("%T.%s is not among what is compared", v, reflect.TypeOf(v).Field(i).Name)
			}
		}
	}
	text := rapid.OneOf(rapid.Just(""), rapid.String(), rapid.StringMatching(`[a-z<>&"\\\n\x{2028}]*`))
	compare := func(t interface{ Fatalf(string, ...any) }, m *coord.Move) {
		want, err := asJSON(m)
		if got := string(coord.AppendMove(nil, m)); err != nil || got != want {
			t.Fatalf("the line is %s, encoding/json writes %s, %v", got, want, err)
		}
	}
	compare(t, &full)
	compare(t, &coord.Move{})
	compare(t, &coord.Move{Task: "no UTF-8: \xff", Reason: "a < b && \"c\""})
	rapid.Check(t, func(t *rapid.T) {
		m := coord.Move{
			Version: rapid.Uint64().Draw(t, "version"), Time: time.UnixMilli(rapid.Int64Range(0, 1<<42).Draw(t, "time")).UTC(),
			Task: text.Draw(t, "task"), From: text.Draw(t, "from"), To: text.Draw(t, "to"), Cause: state.Cause(text.Draw(t, "cause")),
			Attempt: rapid.Uint32().Draw(t, "attempt"), Reason: text.Draw(t, "reason"),
			Seconds: float64(rapid.Int64Range(0, 1<<42).Draw(t, "milliseconds")) / 1000,
		}
		if rapid.Bool().Draw(t, "ended") {
			m.Exit = &state.Exit{
				Code: rapid.Int().Draw(t, "code"), Known: rapid.Bool().Draw(t, "known"), Signal: text.Draw(t, "signal"),
				Word: text.Draw(t, "word"), Worker: text.Draw(t, "worker"), Start: rapid.Uint32().Draw(t, "start"),
			}
		}
		compare(t, &m)
	})
}
