//go:build unix

package turnkeep

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// What was looked at as a file or directory may be anything by the time it is opened.
func TestWhatTookAFilesPlaceIsRefusedWithoutWaiting(t *testing.T) {
	cases := map[string]func(path, other string) error{
		"another file":        func(path, _ string) error { return os.WriteFile(path, nil, 0o600) },
		"a FIFO":              func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
		"a symlink to it":     func(path, other string) error { return os.Symlink(other, path) },
		"a symlink to a FIFO": symlinkToFIFO,
	}
	for name, replace := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
				t.Fatal(err)
			}
			info, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			if content, err := readFile(path, info); err != nil || string(content) != "content" {
				t.Fatalf("the file itself gives %q, %v", content, err)
			}
			other := filepath.Join(t.TempDir(), "other")
			if err := os.Rename(path, other); err != nil {
				t.Fatal(err)
			}
			if err := replace(path, other); err != nil {
				t.Fatal(err)
			}
			mustBeRefused(t, func() error { _, err := readFile(path, info); return err })
			mustBeRefused(t, func() error { _, err := readDirectory(path, info); return err })
		})
	}
}

func symlinkToFIFO(path, _ string) error {
	if err := syscall.Mkfifo(path+".fifo", 0o600); err != nil {
		return err
	}
	return os.Symlink(path+".fifo", path)
}

func mustBeRefused(t *testing.T, read func() error) {
	t.Helper()
	refused := make(chan error, 1)
	go func() { refused <- read() }()
	select {
	case err := <-refused:
		if err == nil {
			t.Error("it was read")
		}
	case <-time.After(time.Minute):
		t.Error("it waits")
	}
}
