//go:build !linux

package azurite

import "os/exec"

func dieWithUs(*exec.Cmd) {}
