package storetest

import "testing"

func differential(t *testing.T, h Harness) { t.Helper() }
