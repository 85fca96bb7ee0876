// Pauses between tries.

package turnkeep

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// backoff counts the tries of one request. Pauses double up to a limit. They are random within a factor of
// two, so that many clients do not return at the same moment.
type backoff struct {
	policy Retry
	tries  int
}

// retry waits before the next try after err. It returns the error to report if no try is left.
func (b *backoff) retry(ctx context.Context, err error) error {
	pause, again := b.next(rand.Float64())
	if !again {
		return err
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w while waiting to try again after: %w", ctx.Err(), err)
	}
}

func (b *backoff) next(random float64) (time.Duration, bool) {
	if b.tries >= b.policy.Attempts {
		return 0, false
	}
	pause := b.policy.First
	for i := 0; i < b.tries && pause < b.policy.Longest; i++ {
		pause *= 2
	}
	b.tries++
	half := min(pause, b.policy.Longest) / 2
	return half + time.Duration(float64(half)*random), true
}
