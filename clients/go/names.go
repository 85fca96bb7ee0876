// The names of things: ids, hashes, types.

package turnkeep

import (
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/zeebo/blake3"
)

// ContextID is the id of a context; 0 means none.
type ContextID uint64

// TurnID is the id of a turn; 0 means none.
type TurnID uint64

// String is the id as decimal text, as JSON carries it.
func (id ContextID) String() string { return strconv.FormatUint(uint64(id), 10) }

// String is the id as decimal text, as JSON carries it.
func (id TurnID) String() string { return strconv.FormatUint(uint64(id), 10) }

// Hash names a blob: BLAKE3-256 of its uncompressed bytes. The zero Hash names none.
type Hash [32]byte

// HashOf hashes bytes.
func HashOf(bytes []byte) Hash { return blake3.Sum256(bytes) }

// ParseHash reads 64 hexadecimal digits.
func ParseHash(text string) (hash Hash, err error) {
	decoded, err := hex.DecodeString(text)
	if err != nil || len(decoded) != len(hash) {
		return Hash{}, fmt.Errorf("turnkeep: %q is not a hash of 64 hexadecimal digits", text)
	}
	return Hash(decoded), nil
}

// String is the hash as 64 lower-case hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// IsZero reports whether this is the zero Hash.
func (h Hash) IsZero() bool { return h == Hash{} }

// TypeRef is a declared type; the zero TypeRef declares none.
type TypeRef struct {
	ID      string
	Version uint32
}
