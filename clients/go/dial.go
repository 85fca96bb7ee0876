// Makes connections. It fails with ErrConnect if no server can be reached, and with the server's error if the server
// refuses the client.

package turnkeep

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"

	"turnkeep.dev/go/internal/wire"
)

// tagBytesMax is the longest tag: the server only logs it.
const tagBytesMax = 256

// dialer makes connections: TCP, TLS when configured, HELLO, all within one time-out.
type dialer struct {
	addr    string
	options *options
	hello   *wire.Hello
}

func newDialer(addr string, o *options) (*dialer, error) {
	meta := []byte("{}")
	if o.token != "" {
		var err error
		if meta, err = json.Marshal(map[string]string{"token": o.token}); err != nil {
			return nil, err
		}
	}
	if len(o.tag) > tagBytesMax {
		return nil, fmt.Errorf("%w: a tag of %d bytes is over the limit of %d", ErrTooLarge, len(o.tag), tagBytesMax)
	}
	hello := &wire.Hello{Version: wire.Version, Tag: o.tag, Meta: meta}
	return &dialer{addr: addr, options: o, hello: hello}, nil
}

// dial connects once.
func (d *dialer) dial(ctx context.Context) (*connection, error) {
	limited, cancel := context.WithTimeout(ctx, d.options.connectTimeout)
	defer cancel()
	socket, err := d.connect(limited)
	if err != nil {
		return nil, d.explain(ctx, err)
	}
	c := startConnection(socket, d.options)
	if err := d.greet(limited, c); err != nil {
		c.close(ErrClosed)
		if limited.Err() != nil {
			return nil, d.explain(ctx, limited.Err())
		}
		return nil, err
	}
	return c, nil
}

// explain distinguishes a caller that stopped waiting from a server that cannot be reached in time. In the
// second case the cause becomes text: it may be a deadline that is not the caller's, and errors.Is must not
// match it.
func (d *dialer) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w to %s: %v", ErrConnect, d.addr, err)
}

func (d *dialer) connect(ctx context.Context) (net.Conn, error) {
	socket, err := new(net.Dialer).DialContext(ctx, "tcp", d.addr)
	if err != nil || d.options.tls == nil {
		return socket, err
	}
	config := d.options.tls.Clone()
	if config.ServerName == "" {
		if config.ServerName, _, err = net.SplitHostPort(d.addr); err != nil {
			_ = socket.Close()
			return nil, err
		}
	}
	secured := tls.Client(socket, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = socket.Close()
		return nil, err
	}
	return secured, nil
}

func (d *dialer) greet(ctx context.Context, c *connection) error {
	p := newCall(nil, 0)
	if err := c.call(p, d.hello); err != nil {
		return err
	}
	welcome, err := answer[*wire.Welcome](ctx, p, d.hello)
	if err != nil {
		return err
	}
	if welcome.Version != wire.Version {
		return fmt.Errorf("%w: it speaks version %d, not %d", ErrProtocol, welcome.Version, wire.Version)
	}
	return nil
}
