// Why a bundle is refused: the kinds are the server's, and so are the words.

package registry

import (
	"errors"
	"fmt"
)

// Why a bundle is refused; the server answers with the status beside each.
var (
	ErrMalformed = errors.New("malformed bundle")      // 422
	ErrConflict  = errors.New("illegal evolution")     // 409
	ErrTooDeep   = errors.New("bundle nests too deep") // 413
)

// Refusal says why a bundle is refused, here as on the server. [errors.Is] finds its kind.
type Refusal struct {
	Kind   error // ErrMalformed, ErrConflict or ErrTooDeep
	Reason string
}

func (r *Refusal) Error() string { return "registry: " + r.Kind.Error() + ": " + r.Reason }

// Unwrap returns the kind.
func (r *Refusal) Unwrap() error { return r.Kind }

func malformed(format string, args ...any) error {
	return &Refusal{ErrMalformed, fmt.Sprintf(format, args...)}
}

func conflict(format string, args ...any) error {
	return &Refusal{ErrConflict, fmt.Sprintf(format, args...)}
}
