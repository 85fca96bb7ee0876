//go:build unix

package turnkeep

import (
	"os"
	"syscall"
)

// openPlain opens a file or directory for reading. It follows no symlink and does not block: a FIFO would make it
// wait for a writer.
func openPlain(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}
