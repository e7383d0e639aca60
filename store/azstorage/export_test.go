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
	PointerKey   = pointerKey
	Shard        = shard
)

// PresenceAt returns the members of s as they look at the time of now.
func PresenceAt(s *port.Store, now func() time.Time) port.Presence {
	return presence{s.Presence.(presence).p, now}
}
