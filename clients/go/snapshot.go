// Stores directories. Symlinks are never followed. A file that changes during the snapshot is stored as it was read, or
// refused.

package turnkeep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

const (
	// snapshotFileBytesMax is the largest file that a snapshot can hold: the server's limit of a blob.
	snapshotFileBytesMax = 32 << 20
	// snapshotDepthMax bounds the nesting of directories.
	snapshotDepthMax = 256
	// snapshotBatchBlobs and snapshotBatchBytes are collected before the client asks the server which blobs it has.
	snapshotBatchBlobs = 4096
	snapshotBatchBytes = 32 << 20
	// snapshotUploads is the number of concurrent uploads.
	snapshotUploads = 64
)

// ErrUnsupportedFile says that a snapshot found something other than a file, directory or symlink.
var ErrUnsupportedFile = errors.New("turnkeep: not a file, directory or symlink")

// Snapshot describes a stored directory: its root, its contents and the upload.
type Snapshot struct {
	// Root is what AttachFS and Append.FSRoot take.
	Root Hash
	// Files, Directories and Symlinks count entries; the root is a directory.
	Files, Directories, Symlinks int
	// Blobs and Bytes count the uploaded blobs.
	Blobs int
	Bytes int64
}

// SnapshotOptions says which entries a snapshot leaves out.
type SnapshotOptions struct {
	// Skip leaves out an entry for which it returns true; a directory with all of its contents. The path is
	// relative to the snapshot's directory, with slashes.
	Skip func(path string, entry fs.DirEntry) bool
}

// Snapshot stores a directory: its files, symlinks (their targets, never followed) and directories, with
// permissions. It uploads only blobs that the server does not have. The same directory always has the same
// root. If the directory changes meanwhile, the root describes the bytes that were read. Anything but files,
// directories and symlinks is ErrUnsupportedFile, unless it is skipped.
func (c *Client) Snapshot(ctx context.Context, dir string, o SnapshotOptions) (Snapshot, error) {
	// Only the directory itself may be named by a symlink; openSame follows none.
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Snapshot{}, err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return Snapshot{}, err
	}
	if !info.IsDir() {
		return Snapshot{}, fmt.Errorf("turnkeep: %s is not a directory", dir)
	}
	w := &snapshotWalk{client: c, options: o, seen: make(map[Hash]bool)}
	root, err := w.directory(ctx, dir, "", info, 0)
	if err != nil {
		return Snapshot{}, err
	}
	if err := w.flush(ctx); err != nil {
		return Snapshot{}, err
	}
	w.result.Root = root
	return w.result, nil
}

// snapshotWalk collects blobs and uploads those that the server lacks. The caller gets the root only after
// every blob that it names is stored.
type snapshotWalk struct {
	client  *Client
	options SnapshotOptions
	result  Snapshot
	seen    map[Hash]bool
	hashes  []Hash
	blobs   [][]byte
	bytes   int
}

func (w *snapshotWalk) directory(ctx context.Context, dir, relative string, info fs.FileInfo, depth int) (Hash, error) {
	if depth > snapshotDepthMax {
		return Hash{}, fmt.Errorf("%w: %s is nested deeper than %d", ErrTooLarge, dir, snapshotDepthMax)
	}
	listed, err := readDirectory(dir, info)
	if err != nil {
		return Hash{}, err
	}
	w.result.Directories++
	var entries []Entry
	for _, found := range listed {
		below := joinSlash(relative, found.Name())
		if w.options.Skip != nil && w.options.Skip(below, found) {
			continue
		}
		entry, err := w.entry(ctx, filepath.Join(dir, found.Name()), below, depth)
		if err != nil {
			return Hash{}, err
		}
		entries = append(entries, entry)
	}
	tree, err := EncodeTree(entries)
	if err != nil {
		return Hash{}, err
	}
	return w.keep(ctx, dir, tree)
}

// readDirectory lists the directory that info describes. It fails if another one has taken its place.
func readDirectory(path string, info fs.FileInfo) ([]fs.DirEntry, error) {
	dir, err := openSame(path, info)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return dir.ReadDir(-1)
}

func joinSlash(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

func (w *snapshotWalk) entry(ctx context.Context, path, relative string, depth int) (Entry, error) {
	if err := ctx.Err(); err != nil {
		return Entry{}, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return Entry{}, err
	}
	entry := Entry{Name: info.Name(), Mode: unixMode(info.Mode())}
	var content []byte
	switch info.Mode().Type() {
	case fs.ModeDir:
		entry.Kind = EntryDirectory
		entry.Hash, err = w.directory(ctx, path, relative, info, depth+1)
		return entry, err
	case fs.ModeSymlink:
		w.result.Symlinks++
		var target string
		target, err = os.Readlink(path)
		entry.Kind, content = EntrySymlink, []byte(target)
	case 0:
		w.result.Files++
		content, err = readFile(path, info)
	default:
		err = fmt.Errorf("%w: %s is %v", ErrUnsupportedFile, path, info.Mode().Type())
	}
	if err != nil {
		return Entry{}, err
	}
	entry.Size = uint64(len(content))
	entry.Hash, err = w.keep(ctx, path, content)
	return entry, err
}

// readFile reads the file that info describes. It fails if another one has taken its place.
func readFile(path string, info fs.FileInfo) ([]byte, error) {
	file, err := openSame(path, info)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	// With one byte more than the limit, keep refuses a longer file instead of storing its beginning.
	return io.ReadAll(io.LimitReader(file, snapshotFileBytesMax+1))
}

// openSame opens the file that info describes. It refuses a path that was replaced meanwhile, for example by a symlink,
// and does not block on one that was replaced by a FIFO.
func openSame(path string, info fs.FileInfo) (*os.File, error) {
	file, err := openPlain(path)
	if err != nil {
		return nil, err
	}
	opened, err := file.Stat()
	if err == nil && !os.SameFile(info, opened) {
		err = fmt.Errorf("turnkeep: %s was replaced while it was read", path)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// unixMode returns the mode bits that a tree stores, at their Unix positions.
func unixMode(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	for _, special := range []struct {
		mode fs.FileMode
		bit  uint32
	}{{fs.ModeSetuid, 0o4000}, {fs.ModeSetgid, 0o2000}, {fs.ModeSticky, 0o1000}} {
		if mode&special.mode != 0 {
			bits |= special.bit
		}
	}
	return bits
}

// keep collects a blob, and uploads when a batch is full.
func (w *snapshotWalk) keep(ctx context.Context, path string, blob []byte) (Hash, error) {
	if len(blob) > snapshotFileBytesMax {
		return Hash{}, fmt.Errorf("%w: %s has more than %d bytes", ErrTooLarge, path, snapshotFileBytesMax)
	}
	hash := HashOf(blob)
	if w.seen[hash] {
		return hash, nil
	}
	w.seen[hash] = true
	w.hashes, w.blobs = append(w.hashes, hash), append(w.blobs, blob)
	w.bytes += len(blob)
	if len(w.blobs) >= snapshotBatchBlobs || w.bytes >= snapshotBatchBytes {
		return hash, w.flush(ctx)
	}
	return hash, nil
}

// flush uploads the collected blobs that the server does not have.
func (w *snapshotWalk) flush(ctx context.Context) error {
	present, err := w.client.HasBlobs(ctx, w.hashes)
	if err != nil {
		return err
	}
	var missing [][]byte
	for i, there := range present {
		if !there {
			missing = append(missing, w.blobs[i])
			w.result.Blobs++
			w.result.Bytes += int64(len(w.blobs[i]))
		}
	}
	w.hashes, w.blobs, w.bytes = nil, nil, 0
	return w.client.putAll(ctx, missing)
}

// putAll stores blobs, several at a time so that they share the server's syncs. The first failure ends it.
func (c *Client) putAll(ctx context.Context, blobs [][]byte) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan []byte)
	var workers sync.WaitGroup
	for range min(snapshotUploads, len(blobs)) {
		workers.Add(1)
		go func() {
			defer workers.Done()
			// A worker goes on after a failure, and then fails at once, because the context is cancelled. If all workers
			// returned, the loop below would wait for ever.
			for blob := range next {
				if _, _, err := c.PutBlob(ctx, blob); err != nil {
					cancel(err)
				}
			}
		}()
	}
	for _, blob := range blobs {
		next <- blob
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}
