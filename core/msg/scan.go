package msg

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// scanCompletion reads the message of a completion in the form in which workers
// write it, at a tenth of what encoding/json takes for its three documents inside
// each other. It reports false for whatever is unusual in the least, valid or not:
// encoding/json says what that is. Where it reports true, encoding/json reads the
// same.
func scanCompletion(body []byte) (*Completion, bool) {
	// Texts lose their escapes in place, and body is not ours.
	var room [1 << 10]byte
	kwargs, ok := scanEnvelope(append(room[:0], body...))
	if !ok {
		return nil, false
	}
	var report []byte
	s := scanner{src: kwargs}
	for key := s.member(); key != nil; key = s.member() {
		if string(key) != keyCompletion {
			return nil, false
		}
		report = s.text()
	}
	if s.bad {
		return nil, false
	}
	return scanReport(report)
}

// scanEnvelope returns the kwargs of the envelope in src.
func scanEnvelope(src []byte) (kwargs []byte, ok bool) {
	s := scanner{src: src}
	for key := s.member(); key != nil; key = s.member() {
		switch string(key) {
		case "version":
			if s.count() > 1 {
				return nil, false
			}
		case "reply_requested":
			s.bool()
		case "kwargs":
			kwargs = s.text()
		case "num_retries":
			s.number()
		case "id":
			s.text()
		default:
			return nil, false
		}
	}
	return kwargs, !s.bad
}

// scanReport reads the innermost document.
func scanReport(src []byte) (*Completion, bool) {
	c, decided := &Completion{}, false
	s := scanner{src: src}
	for key := s.member(); key != nil; key = s.member() {
		switch string(key) {
		case "workflow_id":
			c.Workflow = string(s.text())
		case "task_name":
			c.Task = string(s.text())
		case "success":
			c.Success, decided = s.bool(), true
		case "output_ref":
			s.textOrNull(&c.OutputRef)
		case "error":
			s.textOrNull(&c.Error)
		case "attempt_no":
			c.Attempt = uint32(s.count())
		case "exit_code":
			c.ExitCode = new(s.number())
		case "signal":
			c.Signal = string(s.text())
		case "reason":
			c.Reason = Reason(s.text())
		case "worker":
			c.Worker = string(s.text())
		case "start":
			c.Start = uint32(s.count())
		case "started_at":
			c.StartedAt = s.time()
		case "ended_at":
			c.EndedAt = s.time()
		case "log":
			c.Log = string(s.text())
		default:
			return nil, false
		}
	}
	return c, !s.bad && decided && c.Workflow != "" && c.Task != ""
}

// scanner reads one JSON object, member by member, and overwrites src with the
// texts in it. It knows the forms that json.dumps gives to the values of ours;
// anything else makes it bad, after which nothing that it returns means anything.
type scanner struct {
	src   []byte
	at    int
	begun bool
	bad   bool
}

// fail makes s bad, and ends it so that no loop goes on.
func (s *scanner) fail() { s.bad, s.at = true, len(s.src) }

// member goes to the next member and returns its key, nil after the last one, which
// must be the end of src as well. The key is not kept in s, so that src may lie on
// the stack.
func (s *scanner) member() (key []byte) {
	switch c := s.peek(); {
	case c == '}' && s.begun:
		s.at++
		if s.peek(); s.at < len(s.src) {
			s.fail()
		}
		return nil
	case s.begun:
		s.take(',')
	default:
		s.take('{')
		s.begun = true
	}
	key = s.text()
	if s.take(':'); s.bad {
		return nil
	}
	return key
}

// peek skips white space and returns the byte after it, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.src); s.at++ {
		if c := s.src[s.at]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c
		}
	}
	return 0
}

func (s *scanner) take(c byte) {
	if s.peek() != c {
		s.fail()
		return
	}
	s.at++
}

// text reads a string of ASCII and returns what it says. This is the loop that
// takes the time: the escapes of texts inside texts come first.
func (s *scanner) text() []byte {
	s.take('"')
	rest := s.src[s.at:]
	from, to := 0, 0
	for from < len(rest) {
		c := rest[from]
		switch {
		case c != '"' && c != '\\' && c >= ' ' && c < utf8.RuneSelf:
			from++
		case c == '\\' && from+1 < len(rest) && (rest[from+1] == '"' || rest[from+1] == '\\'):
			c = rest[from+1]
			from += 2
		case c == '"':
			s.at += from + 1
			return rest[:to]
		default:
			r, size := unescape(rest[from:])
			if size == 0 {
				s.fail()
				return nil
			}
			from += size
			to += utf8.EncodeRune(rest[to:], r)
			continue
		}
		rest[to] = c
		to++
	}
	s.fail()
	return nil
}

// unescape returns the rune of the escape at the front of b and the size of the
// escape, which is above that of the rune; 0 for anything else, and for halves of
// surrogate pairs.
func unescape(b []byte) (r rune, size int) {
	if len(b) < 2 || b[0] != '\\' {
		return 0, 0
	}
	if i := strings.IndexByte(`"\/bfnrt`, b[1]); i >= 0 {
		return rune("\"\\/\b\f\n\r\t"[i]), 2
	}
	const long = len(`\u0000`)
	if b[1] != 'u' || len(b) < long {
		return 0, 0
	}
	unit, err := strconv.ParseUint(string(b[2:long]), 16, 16)
	if err != nil || utf16.IsSurrogate(rune(unit)) {
		return 0, 0
	}
	return rune(unit), long
}

// textOrNull sets to, which null leaves as it is.
func (s *scanner) textOrNull(to *string) {
	if !s.word("null") {
		*to = string(s.text())
	}
}

func (s *scanner) bool() bool {
	if s.word("true") {
		return true
	}
	if !s.word("false") {
		s.fail()
	}
	return false
}

// word takes w if it comes next.
func (s *scanner) word(w string) bool {
	s.peek()
	if len(s.src)-s.at < len(w) || string(s.src[s.at:s.at+len(w)]) != w {
		return false
	}
	s.at += len(w)
	return true
}

// maxDigits keeps numbers within all types that hold one.
const maxDigits = 9

// count reads a whole number that is not negative.
func (s *scanner) count() int {
	s.peek()
	return s.digits()
}

// number reads a whole number.
func (s *scanner) number() int {
	if s.peek() != '-' {
		return s.digits()
	}
	s.at++
	return -s.digits()
}

func (s *scanner) digits() (n int) {
	start := s.at
	for ; s.at < len(s.src) && s.src[s.at] >= '0' && s.src[s.at] <= '9'; s.at++ {
		n = 10*n + int(s.src[s.at]-'0')
	}
	if length := s.at - start; length == 0 || length > maxDigits || length > 1 && s.src[start] == '0' {
		s.fail()
	}
	return n
}

// time reads a time. One with escapes is left to encoding/json, which does not
// undo them there.
func (s *scanner) time() (t time.Time) {
	s.peek()
	start := s.at
	text := s.text()
	if len(text) != s.at-start-len(`""`) || t.UnmarshalText(text) != nil {
		s.fail()
	}
	return t
}
