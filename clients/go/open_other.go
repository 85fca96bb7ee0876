//go:build !unix

package turnkeep

import "os"

// openPlain opens a file or directory for reading.
func openPlain(path string) (*os.File, error) { return os.Open(path) }
