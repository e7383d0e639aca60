package azstorage

import (
	"time"

	"jobq/core/port"
)

// Inner parts that tests hold to their own laws.
var (
	EncodePath   = encodePath
	DecodePath   = decodePath
	PackPoison   = packPoison
	UnpackPoison = unpackPoison
	RequestSize  = requestSize
	PointerKey   = pointerKey
	Shard        = shard
	ASCII        = ascii
)

// PresenceLater returns the members of s as they look after that time.
func PresenceLater(s *port.Store, d time.Duration) port.Presence {
	return presence{s.Presence.(presence).p, d}
}
