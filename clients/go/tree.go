// Filesystem trees as blobs: a directory is a msgpack array of maps {1: name, 2: kind, 3: mode, 4: size, 5: hash},
// sorted by the bytes of the name. A name is a str, or a bin when it is not UTF-8. A tag is written as an integer, and
// read as an integer or as its digit: other programs write the fields of a struct with text keys.

package turnkeep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// treeEntriesMax is the most entries of one directory that a reader accepts.
const treeEntriesMax = 1 << 20

// modeBits are the bits of a mode that a tree keeps.
const modeBits = 0o7777

// EntryKind says what an entry of a directory is.
type EntryKind uint8

// The kinds of entries.
const (
	EntryFile      EntryKind = 0
	EntryDirectory EntryKind = 1
	EntrySymlink   EntryKind = 2
)

// Entry is one entry of a directory in a filesystem snapshot.
type Entry struct {
	// Name is one path element; it need not be UTF-8.
	Name string
	Kind EntryKind
	// Mode holds the permission bits and setuid, setgid and sticky, as in Unix.
	Mode uint32
	// Size is that of a file's content or a symlink's target; 0 for a directory.
	Size uint64
	// Hash names the file's content, the directory's tree or the symlink's target.
	Hash Hash
}

// ErrBadTree says that a blob is not a filesystem tree, or has names that no directory can have.
var ErrBadTree = errors.New("turnkeep: not a filesystem tree")

// Tree reads one directory of a filesystem snapshot: the root, or a directory's Entry.Hash.
func (c *Client) Tree(ctx context.Context, hash Hash) ([]Entry, error) {
	blob, err := c.Blob(ctx, hash)
	if err != nil {
		return nil, err
	}
	return DecodeTree(blob)
}

// EncodeTree makes a directory's blob. The same entries, in any order, always give the same bytes.
func EncodeTree(entries []Entry) ([]byte, error) {
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
	if err := checkNames(sorted); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	encoder := msgpack.NewEncoder(&out)
	// Writing to a buffer cannot fail.
	_ = encoder.EncodeArrayLen(len(sorted))
	for _, entry := range sorted {
		encodeEntry(encoder, entry)
	}
	return out.Bytes(), nil
}

func encodeEntry(encoder *msgpack.Encoder, entry Entry) {
	_ = encoder.EncodeMapLen(5)
	_ = encoder.EncodeUint(1)
	if utf8.ValidString(entry.Name) {
		_ = encoder.EncodeString(entry.Name)
	} else {
		_ = encoder.EncodeBytes([]byte(entry.Name))
	}
	for i, value := range []uint64{uint64(entry.Kind), uint64(entry.Mode & modeBits), entry.Size} {
		_ = encoder.EncodeUint(uint64(i) + 2)
		_ = encoder.EncodeUint(value)
	}
	_ = encoder.EncodeUint(5)
	_ = encoder.EncodeBytes(entry.Hash[:])
}

// DecodeTree reads a directory's blob. Nothing in it is trusted: names that are empty, "." or "..", that
// contain a slash or a zero byte, or that are not in order are refused, so that a tree can be written to a
// disk without leaving its directory.
func DecodeTree(blob []byte) ([]Entry, error) {
	reader := bytes.NewReader(blob)
	decoder := msgpack.NewDecoder(reader)
	count, err := decoder.DecodeArrayLen()
	if err != nil {
		return nil, badTree(err)
	}
	// Each entry takes at least one byte, so a short blob cannot make this allocate for a million.
	if count < 0 || count > min(treeEntriesMax, len(blob)) {
		return nil, fmt.Errorf("%w: it declares %d entries", ErrBadTree, count)
	}
	entries := make([]Entry, count)
	for i := range entries {
		if entries[i], err = decodeEntry(decoder, len(blob)); err != nil {
			return nil, badTree(err)
		}
	}
	if rest, err := decoder.PeekCode(); err == nil {
		return nil, fmt.Errorf("%w: byte %#x follows it", ErrBadTree, rest)
	}
	return entries, checkNames(entries)
}

func badTree(err error) error { return fmt.Errorf("%w: %w", ErrBadTree, err) }

func decodeEntry(decoder *msgpack.Decoder, bytesMax int) (entry Entry, err error) {
	count, err := decoder.DecodeMapLen()
	if err != nil {
		return entry, err
	}
	var seen [6]bool
	for range count {
		tag, err := decodeTagKey(decoder, bytesMax)
		if err != nil {
			return entry, err
		}
		if tag < 1 || tag > 5 || seen[tag] {
			return entry, fmt.Errorf("an entry has a bad tag %d", tag)
		}
		seen[tag] = true
		if err := decodeTag(decoder, &entry, tag, bytesMax); err != nil {
			return entry, err
		}
	}
	if !seen[1] || !seen[5] {
		return entry, errors.New("an entry has no name or no hash")
	}
	return entry, nil
}

// decodeTagKey reads a tag: an integer or its digit as text. All tags have one digit, so "01" is not a tag.
func decodeTagKey(decoder *msgpack.Decoder, bytesMax int) (uint64, error) {
	code, err := decoder.PeekCode()
	if err != nil {
		return 0, err
	}
	if !msgpcode.IsString(code) {
		return decoder.DecodeUint64()
	}
	text, err := decodeText(decoder, bytesMax)
	if err != nil {
		return 0, err
	}
	if len(text) != 1 || text[0] < '0' || text[0] > '9' {
		return 0, fmt.Errorf("an entry has a bad tag %q", text)
	}
	return uint64(text[0] - '0'), nil
}

func decodeTag(decoder *msgpack.Decoder, entry *Entry, tag uint64, bytesMax int) error {
	switch tag {
	case 1:
		name, err := decodeText(decoder, bytesMax)
		entry.Name = string(name)
		return err
	case 2:
		kind, err := decoder.DecodeUint64()
		if err == nil && kind > uint64(EntrySymlink) {
			err = fmt.Errorf("an entry has a bad kind %d", kind)
		}
		entry.Kind = EntryKind(kind)
		return err
	case 3:
		mode, err := decoder.DecodeUint64()
		entry.Mode = uint32(mode & modeBits)
		return err
	case 4:
		size, err := decoder.DecodeUint64()
		entry.Size = size
		return err
	}
	hash, err := decodeText(decoder, bytesMax)
	if err == nil && len(hash) != len(entry.Hash) {
		err = fmt.Errorf("an entry has a hash of %d bytes", len(hash))
	}
	copy(entry.Hash[:], hash)
	return err
}

// decodeText reads a str or a bin, whose length cannot be more than the whole tree's.
func decodeText(decoder *msgpack.Decoder, bytesMax int) ([]byte, error) {
	code, err := decoder.PeekCode()
	if err != nil {
		return nil, err
	}
	if !msgpcode.IsString(code) && !msgpcode.IsBin(code) {
		return nil, fmt.Errorf("code %#x is no name", code)
	}
	length, err := decoder.DecodeBytesLen()
	if err != nil {
		return nil, err
	}
	if length < 0 || length > bytesMax {
		return nil, fmt.Errorf("a name of %d bytes", length)
	}
	text := make([]byte, length)
	return text, decoder.ReadFull(text)
}

func checkNames(sorted []Entry) error {
	for i, entry := range sorted {
		name := entry.Name
		if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
			return fmt.Errorf("%w: %q is no name", ErrBadTree, name)
		}
		if i > 0 && sorted[i-1].Name >= name {
			return fmt.Errorf("%w: %q and %q are not in order", ErrBadTree, sorted[i-1].Name, name)
		}
	}
	return nil
}
