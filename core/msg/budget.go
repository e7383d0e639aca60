package msg

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"jobq/core/fault"
)

// Sizes in bytes.
const (
	// MaxInlineOutput is the largest output that may travel inside a completion,
	// as ai4s-jobq has it; the encoded message must fit its queue as well.
	MaxInlineOutput = 32 << 10
	// MaxError is the length to which error texts are cut before they travel.
	MaxError = 1 << 10
	// headRoom is what a message may grow by when it is sent again: digits of
	// the attempt number, of the epoch, and of the state version in its id.
	headRoom = 64
)

// PackedTask is a task message that fits its queue.
type PackedTask struct {
	Body []byte
	// Refs, where not nil, must be stored under RefsName before Body is sent.
	Refs     []byte
	RefsName string
}

// PackTask encodes t for a queue whose messages may have limit bytes (0 for no
// limit). Upstream references that do not fit are moved out of the message, the
// statuses of parents are left out where there is no room even then.
// Fails with fault.TooLarge, naming task and size, when it is too large even
// without them. Room is reserved on top of the message of a first attempt, so
// what fits once fits at every later attempt.
func PackTask(t Task, limit int) (PackedTask, error) {
	body, err := EncodeTask(t)
	if err != nil {
		return PackedTask{}, err
	}
	var packed PackedTask
	size := firstSize(t, len(body), limit)
	if size > limit && limit > 0 && t.Upstream != nil {
		packed.Refs = EncodeRefs(*t.Upstream)
		packed.RefsName = RefsBlob(t.Workflow, t.Name, t.Attempt)
		t.Upstream, t.UpstreamRef = nil, packed.RefsName
		if body, err = EncodeTask(t); err != nil {
			return PackedTask{}, err
		}
		size = firstSize(t, len(body), limit)
	}
	if size > limit && limit > 0 && t.Statuses != nil {
		// Thousands of parents that did not succeed: that much only tells people.
		t.Statuses = nil
		if body, err = EncodeTask(t); err != nil {
			return PackedTask{}, err
		}
		size = firstSize(t, len(body), limit)
	}
	if size > limit && limit > 0 {
		return PackedTask{}, fault.Newf(fault.TooLarge,
			"the message of task %q has %d bytes; its queue takes %d, of which %d are reserved", t.Name, size-headRoom, limit, headRoom).
			WithRemedy("shorten cmd or env, or put the data into a file that the task reads")
	}
	packed.Body = body
	return packed, nil
}

// firstSize returns the size of t, whose message has size bytes, with the reserved
// room. Where that is above limit it is the size at the first attempt: what grew
// since has used of the room.
func firstSize(t Task, size, limit int) int {
	if size+headRoom <= limit || t.Attempt <= 1 && t.Epoch <= 1 {
		return size + headRoom
	}
	used := 2 * (digits(uint64(t.Attempt)) - 1) // the number and the id
	if t.UpstreamRef != "" {
		used += digits(uint64(t.Attempt)) - 1
	}
	if t.Epoch > 0 {
		used += digits(t.Epoch) - 1
	}
	return size + headRoom - used
}

func digits(n uint64) int { return len(strconv.FormatUint(n, 10)) }

// TruncateText returns s as valid UTF-8 of at most limit bytes. Of a longer text
// the head and the tail are kept, because errors explain themselves in either,
// with a note between them. A limit below 0 is one of 0.
func TruncateText(s string, limit int) string {
	limit = max(limit, 0)
	if len(s) <= limit && utf8.ValidString(s) {
		return s
	}
	if len(s) > 2*limit {
		// Only the ends matter: a text of many megabytes is not walked.
		return cut(toValid(s[:limit]), toValid(s[len(s)-limit:]), len(s), limit)
	}
	if s = toValid(s); len(s) <= limit {
		return s
	}
	return cut(s, s, len(s), limit)
}

func cut(head, tail string, length, limit int) string {
	note := fmt.Sprintf("\n[... %d bytes in all, cut here ...]\n", length)
	keep := limit - len(note)
	if keep < 2 {
		return head[:boundary(head, limit)]
	}
	head = head[:boundary(head, keep/2)]
	// Replacing bad bytes may have left less than there is room for.
	from := max(len(tail)-(keep-keep/2), 0)
	for from < len(tail) && !utf8.RuneStart(tail[from]) {
		from++
	}
	return head + note + tail[from:]
}

// boundary returns the largest start of a rune in s that is at most n.
func boundary(s string, n int) int {
	if n >= len(s) {
		return len(s)
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return max(n, 0)
}

func toValid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
