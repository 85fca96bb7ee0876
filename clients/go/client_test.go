package turnkeep_test

import (
	"context"
	"testing"
	"time"

	turnkeep "turnkeep.dev/go"
	"turnkeep.dev/go/internal/realserver"
)

// testTimeout bounds every test's requests.
const testTimeout = 60 * time.Second

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// dial connects to a real server and closes the client with the test.
func dial(t testing.TB, s *realserver.Server, options ...turnkeep.Option) *turnkeep.Client {
	t.Helper()
	options = append([]turnkeep.Option{turnkeep.WithToken(s.Token)}, options...)
	return dialAddr(t, s.Addr, options...)
}

func dialAddr(t testing.TB, addr string, options ...turnkeep.Option) *turnkeep.Client {
	t.Helper()
	client, err := turnkeep.Dial(testContext(t), addr, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}
