package cond

import (
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestOutputsAreDecodedAsInPython(t *testing.T) {
	t.Parallel()
	bigValue, _ := new(big.Int).SetString("-9223372036854775809", 10)
	tests := map[string]struct {
		text string
		want any
	}{
		"integers":           {"[0, -0, 12, 9223372036854775807]", list{int64(0), int64(0), int64(12), int64(9223372036854775807)}},
		"large integers":     {"-9223372036854775809", bigValue},
		"floats":             {"[1.0, -2.5e-3, 1E2]", list{1.0, -0.0025, 100.0}},
		"words":              {" [true,false , null]\n", list{true, false, nil}},
		"the last key wins":  {`{"a": 1, "\u0061": 2}`, object{"a": int64(2)}},
		"empty ones":         {`[[], {}, ""]`, list{list{}, object{}, ""}},
		"escapes":            {`"\"\\\/\b\f\n\r\tü\u00fc\u0000"`, "\"\\/\b\f\n\r\tüü\x00"},
		"surrogate pair":     {`"\ud83d\ude00"`, "😀"},
		"half a pair":        {`"\ud83dx\ude00"`, "\xed\xa0\xbdx\xed\xb8\x80"},
		"two first halves":   {`"\ud83d\ud83d\ude00"`, "\xed\xa0\xbd😀"},
		"half before escape": {`"\ud83d\n"`, "\xed\xa0\xbd\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := decode([]byte(test.text), nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmp.Comparer(func(a, b *big.Int) bool { return a.Cmp(b) == 0 })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOnlyWantedFieldsAreKept(t *testing.T) {
	t.Parallel()
	got, err := decode([]byte(`{"a": {"b": 1}, "c": [1, "x"], "d": 2.5, "\u0065": null}`), []string{"a", "e", "f"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(object{"a": object{"b": int64(1)}, "e": nil}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeDecodedSaysWhere(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                         "is not JSON (byte 1)",
		"nul":                      "is not JSON (byte 4)",
		"NaN":                      "is not JSON (byte 1)",
		"01":                       "is not JSON (byte 2)",
		"1.":                       "is not JSON (byte 3)",
		"1e+":                      "is not JSON (byte 4)",
		"-":                        "is not JSON (byte 2)",
		"[1,]":                     "is not JSON (byte 4)",
		`{"a" 1}`:                  "is not JSON (byte 6)",
		`{1: 1}`:                   "is not JSON (byte 2)",
		`{"a": 1,}`:                "is not JSON (byte 9)",
		`{"a": 1`:                  "is not JSON (byte 8)",
		"1 2":                      "is not JSON (byte 3)",
		"\ufeff1":                  "is not JSON (byte 1)",
		`"a`:                       "is not JSON (byte 3)",
		"\"a\nb\"":                 "is not JSON (byte 3)",
		`"\x41"`:                   "is not JSON (byte 3)",
		`"\u12"`:                   "is not JSON (byte 3)",
		`"\ud83d\u12"`:             "is not JSON (byte 9)",
		"\"a\xff\"":                "is not UTF-8 (byte 5)",
		"\"\\n\xff\"":              "is not UTF-8 (byte 4)",
		strings.Repeat("1", 4301):  "holds an integer of more than 4300 digits (byte 4302)",
		strings.Repeat("[", 10001): "is nested deeper than 10000 levels (byte 10001)",
	} {
		if _, err := decode([]byte(text), nil); err == nil || err.Error() != want {
			t.Errorf("%.20q: %v, want %s", text, err, want)
		}
	}
}

// FuzzDecode holds the decoder against encoding/json, which must accept the same
// texts and find the same values; it replaces halves of surrogate pairs and
// knows no limit of digits.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"a": [1, 2.5e3, "x\u00e9\n", true, null], "b": {"c": -0}}`, `"\ud83d\ude00"`, "[[[1]]]", "1e999", "-", "{\"a\": 1, \"a\": 2}", " \t\r\n1 ", "\"\x7f\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := decode(data, nil)
		_, checked := decode(data, []string{})
		if (err == nil) != (checked == nil) {
			t.Fatalf("%q: kept %v, only checked %v", data, err, checked)
		}
		valid := json.Valid(data)
		if err != nil {
			if valid && utf8.Valid(data) && !errors.Is(err, errTooLarge) {
				t.Fatalf("%q is refused: %v", data, err)
			}
			return
		}
		if !valid {
			t.Fatalf("%q is accepted", data)
		}
		if strings.Contains(strings.ToLower(string(data)), `\ud`) {
			return
		}
		decoder := json.NewDecoder(strings.NewReader(string(data)))
		decoder.UseNumber()
		var want any
		if err := decoder.Decode(&want); err != nil {
			t.Fatal(err)
		}
		if !same(got, want) {
			t.Fatalf("%q: got %v, want %v", data, got, want)
		}
	})
}

// same compares a decoded value with what encoding/json made of the text.
func same(got, want any) bool {
	switch w := want.(type) {
	case json.Number:
		f, err := w.Float64()
		return err != nil || compareNumbers(got, f) == 0 || !strings.ContainsAny(w.String(), ".eE")
	case []any:
		g, ok := got.(list)
		if !ok || len(g) != len(w) {
			return false
		}
		for i := range w {
			if !same(g[i], w[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		g, ok := got.(object)
		if !ok || len(g) != len(w) {
			return false
		}
		for key := range w {
			if value, ok := g[key]; !ok || !same(value, w[key]) {
				return false
			}
		}
		return true
	}
	return got == want
}
