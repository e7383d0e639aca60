package azurite

import (
	"os/exec"
	"syscall"
)

// dieWithUs has the kernel end cmd when the thread that starts it ends.
func dieWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
