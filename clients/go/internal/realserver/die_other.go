//go:build !linux

package realserver

import "syscall"

// dieWithParent is known only on Linux; elsewhere a test process that dies leaves its server.
func dieWithParent() *syscall.SysProcAttr { return nil }
