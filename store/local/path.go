package local

import (
	"strings"
	"unicode/utf8"
)

// A stream's name becomes a path below the directory of its log:
//
//   - each segment between slashes is a directory, the last one a file that ends
//     in ".log"; a directory never does, so "a" and "a/b" are both possible;
//   - bytes that mislead a shell or a file system are written as %XX, a leading
//     dot too, an empty segment as "%";
//   - a segment above maxSegment bytes goes on in a directory below, which is
//     marked by "%+" at the end of its parent;
//   - where the file system folds case, capitals and non-ASCII bytes are escaped.
//
// nameOf undoes pathOf, for every text.
const (
	maxSegment = 200
	fileSuffix = ".log"
	goesOn     = "%+"
	noText     = "%"
	hexDigits  = "0123456789ABCDEF"
)

// pathOf returns the path of the stream called name.
func pathOf(name string, folds bool) string {
	segments := strings.Split(name, "/")
	last := len(segments) - 1
	for i, segment := range segments[:last] {
		segments[i] = directoryOf(segment, folds)
	}
	segments[last] = split(escape(segments[last], folds)) + fileSuffix
	return strings.Join(segments, "/")
}

// directoryOf returns the directory of one segment.
func directoryOf(segment string, folds bool) string {
	dir := split(escape(segment, folds))
	if strings.HasSuffix(dir, fileSuffix) {
		dir = dir[:len(dir)-1] + "%67"
	}
	return dir
}

func escape(segment string, folds bool) string {
	if segment == "" {
		return noText
	}
	var b strings.Builder
	valid := utf8.ValidString(segment)
	for i := range len(segment) {
		c := segment[i]
		if keeps(c, folds, valid) && (c != '.' || i > 0) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hexDigits[c>>4])
		b.WriteByte(hexDigits[c&15])
	}
	return b.String()
}

// keeps reports whether the byte c may stand in a path as it is.
func keeps(c byte, folds, valid bool) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '.', c == '_', c == '-', c == '=', c == ',', c == '@':
		return true
	case c >= 'A' && c <= 'Z':
		return !folds
	default:
		return c >= utf8.RuneSelf && valid && !folds
	}
}

// split breaks a long segment into directories.
func split(escaped string) string {
	var b strings.Builder
	for len(escaped) > maxSegment {
		b.WriteString(escaped[:maxSegment] + goesOn + "/")
		escaped = escaped[maxSegment:]
	}
	b.WriteString(escaped)
	return b.String()
}

// nameOf returns the name of the stream at path, false for a foreign file.
func nameOf(path string) (string, bool) {
	path, ok := strings.CutSuffix(path, fileSuffix)
	if !ok {
		return "", false
	}
	var name, segment strings.Builder
	for part := range strings.SplitSeq(path, "/") {
		if start, more := strings.CutSuffix(part, goesOn); more {
			segment.WriteString(start)
			continue
		}
		segment.WriteString(part)
		text, ok := unescape(segment.String())
		if !ok {
			return "", false
		}
		name.WriteString(text + "/")
		segment.Reset()
	}
	return strings.TrimSuffix(name.String(), "/"), segment.Len() == 0
}

func unescape(segment string) (string, bool) {
	if segment == noText {
		return "", true
	}
	var b strings.Builder
	for i := 0; i < len(segment); i++ {
		if segment[i] != '%' {
			b.WriteByte(segment[i])
			continue
		}
		if i+2 >= len(segment) {
			return "", false
		}
		high, low := strings.IndexByte(hexDigits, segment[i+1]), strings.IndexByte(hexDigits, segment[i+2])
		if high < 0 || low < 0 {
			return "", false
		}
		b.WriteByte(byte(high<<4 | low))
		i += 2
	}
	return b.String(), true
}
