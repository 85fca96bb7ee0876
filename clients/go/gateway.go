// The HTTP routes that the binary protocol has no request for. Replies have a length limit, and errors are those of
// the binary protocol.

package turnkeep

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// gatewayBytesMax bounds a reply of the gateway.
const gatewayBytesMax = 64 << 20

// Gateway is a client of the HTTP port, for labels and statistics, and for the registry in programs that do not
// use the binary protocol. It never retries.
type Gateway struct {
	base   string
	token  string
	client *http.Client
}

// NewGateway makes a gateway client for a base address such as http://127.0.0.1:9010. The token may be
// empty for a server that runs with --no-auth. A nil client is http.DefaultClient; one with another
// Transport serves for TLS.
func NewGateway(base, token string, client *http.Client) *Gateway {
	if client == nil {
		client = http.DefaultClient
	}
	return &Gateway{base: strings.TrimRight(base, "/"), token: token, client: client}
}

// ContextInfo is a context with the fields that only HTTP has.
type ContextInfo struct {
	Head
	CreatedAt time.Time
	Labels    map[string]string
}

// Stats are counters of the store and the server.
type Stats struct {
	Version  string `json:"version"`
	Turns    uint64 `json:"turns"`
	Contexts uint64 `json:"contexts"`
	// WorldContexts counts those of them that are the contexts of worlds.
	WorldContexts uint64 `json:"world_contexts"`
	Blobs         uint64 `json:"blobs"`
	BlobBytes     uint64 `json:"blob_raw_bytes"`
	StoredBytes   uint64 `json:"blob_stored_bytes"`
	Bundles       uint64 `json:"bundles"`
	Types         uint64 `json:"types"`
	// Events is the last event's position.
	Events      uint64 `json:"events"`
	LogBytes    uint64 `json:"log_bytes"`
	IndexBytes  uint64 `json:"index_bytes"`
	Poisoned    bool   `json:"poisoned"`
	Connections uint64 `json:"connections"`
}

// PublishBundle publishes a registry bundle and reports whether it was new.
func (g *Gateway) PublishBundle(ctx context.Context, id string, bundle []byte) (isNew bool, err error) {
	status, _, err := g.do(ctx, http.MethodPut, "/v1/registry/bundles/"+url.PathEscape(id), bundle)
	if err == nil && status != http.StatusCreated && status != http.StatusNoContent {
		err = fmt.Errorf("%w: status %d for a bundle", ErrProtocol, status)
	}
	return status == http.StatusCreated, err
}

// Bundle returns a bundle, byte for byte as it was first published.
func (g *Gateway) Bundle(ctx context.Context, id string) ([]byte, error) {
	_, body, err := g.do(ctx, http.MethodGet, "/v1/registry/bundles/"+url.PathEscape(id), nil)
	return body, err
}

// Context shows a context with its labels.
func (g *Gateway) Context(ctx context.Context, id ContextID) (ContextInfo, error) {
	return g.context(ctx, http.MethodGet, id, nil)
}

// SetLabels replaces a context's labels.
func (g *Gateway) SetLabels(ctx context.Context, id ContextID, labels map[string]string) (ContextInfo, error) {
	if labels == nil {
		labels = map[string]string{}
	}
	body, err := json.Marshal(map[string]any{"labels": labels})
	if err != nil {
		return ContextInfo{}, err
	}
	return g.context(ctx, http.MethodPatch, id, body)
}

// Stats returns the server's counters.
func (g *Gateway) Stats(ctx context.Context) (Stats, error) {
	var stats Stats
	_, body, err := g.do(ctx, http.MethodGet, "/v1/stats", nil)
	if err != nil {
		return stats, err
	}
	return stats, decodeReply(body, &stats)
}

func (g *Gateway) context(ctx context.Context, method string, id ContextID, body []byte) (ContextInfo, error) {
	_, reply, err := g.do(ctx, method, "/v1/contexts/"+id.String(), body)
	if err != nil {
		return ContextInfo{}, err
	}
	var shown struct {
		Context   string            `json:"context_id"`
		Turn      string            `json:"head_turn_id"`
		Depth     uint32            `json:"head_depth"`
		CreatedAt time.Time         `json:"created_at"`
		Labels    map[string]string `json:"labels"`
	}
	if err := decodeReply(reply, &shown); err != nil {
		return ContextInfo{}, err
	}
	head, err := parseHead(shown.Context, shown.Turn, shown.Depth)
	return ContextInfo{Head: head, CreatedAt: shown.CreatedAt, Labels: shown.Labels}, err
}

func parseHead(contextID, turnID string, depth uint32) (Head, error) {
	context, err := strconv.ParseUint(contextID, 10, 64)
	if err != nil {
		return Head{}, protocolError(err)
	}
	turn, err := strconv.ParseUint(turnID, 10, 64)
	if err != nil {
		return Head{}, protocolError(err)
	}
	return Head{Context: ContextID(context), Turn: TurnID(turn), Depth: depth}, nil
}

func decodeReply(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return protocolError(err)
	}
	return nil
}

// do sends a request and returns the reply's status and body. A status from 400 on is an *APIError.
func (g *Gateway) do(ctx context.Context, method, path string, body []byte) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, g.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if g.token != "" {
		request.Header.Set("Authorization", "Bearer "+g.token)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := g.client.Do(request)
	if err != nil {
		if ctx.Err() != nil {
			return 0, nil, ctx.Err()
		}
		return 0, nil, fmt.Errorf("%w to %s: %w", ErrConnect, g.base, err)
	}
	defer response.Body.Close()
	reply, err := readReply(response.Body)
	if err != nil {
		return 0, nil, err
	}
	if response.StatusCode >= http.StatusBadRequest {
		return 0, nil, gatewayError(response.StatusCode, reply)
	}
	return response.StatusCode, reply, nil
}

func readReply(body io.Reader) ([]byte, error) {
	reply, err := io.ReadAll(io.LimitReader(body, gatewayBytesMax+1))
	if err != nil {
		return nil, lost(err)
	}
	if len(reply) > gatewayBytesMax {
		return nil, fmt.Errorf("%w: a reply of more than %d bytes", ErrProtocol, gatewayBytesMax)
	}
	return reply, nil
}

func gatewayError(status int, reply []byte) error {
	var wrapped struct {
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(reply, &wrapped) == nil && wrapped.Error != nil {
		reply = wrapped.Error
	}
	return apiError(status, reply)
}
