package turnkeep_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	turnkeep "turnkeep.dev/go"
	"turnkeep.dev/go/internal/realserver"
)

func httpGet(t *testing.T, server *realserver.Server, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(testContext(t), http.MethodGet, server.HTTP+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+server.Token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestGatewayHasLabelsStatisticsAndTheRegistry(t *testing.T) {
	ctx := testContext(t)
	server := realserver.Start(t)
	client, gateway := dial(t, server), turnkeep.NewGateway(server.HTTP+"/", server.Token, nil)
	head, err := client.CreateContext(ctx, turnkeep.NewContext{})
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"agent": "reviewer", "empty": ""}
	if _, err := gateway.SetLabels(ctx, head.Context, labels); err != nil {
		t.Fatal(err)
	}
	shown, err := gateway.Context(ctx, head.Context)
	if err != nil || shown.Head != head || !maps.Equal(shown.Labels, labels) || shown.CreatedAt.IsZero() {
		t.Errorf("got %+v, %v", shown, err)
	}
	if cleared, err := gateway.SetLabels(ctx, head.Context, nil); err != nil || len(cleared.Labels) != 0 {
		t.Errorf("got %+v, %v", cleared, err)
	}
	const id, bundle = "a/b#c d", `{"registry_version":1,"bundle_id":"a/b#c d","types":{},"enums":{}}`
	if isNew, err := gateway.PublishBundle(ctx, id, []byte(bundle)); err != nil || !isNew {
		t.Errorf("new: %v, %v", isNew, err)
	}
	if isNew, err := client.PublishBundle(ctx, id, []byte(bundle)); err != nil || isNew {
		t.Errorf("again, over the binary protocol: %v, %v", isNew, err)
	}
	if got, err := gateway.Bundle(ctx, id); err != nil || string(got) != bundle {
		t.Errorf("got %q, %v", got, err)
	}
	if stats, err := gateway.Stats(ctx); err != nil || stats.Contexts != 1 || stats.Bundles != 1 || stats.Poisoned {
		t.Errorf("got %+v, %v", stats, err)
	}
}

func TestGatewayErrorsAreThoseOfTheBinaryProtocol(t *testing.T) {
	ctx := testContext(t)
	server := realserver.Start(t)
	gateway := turnkeep.NewGateway(server.HTTP, server.Token, nil)
	_, err := gateway.Context(ctx, 99)
	var refused *turnkeep.APIError
	if !errors.Is(err, turnkeep.ErrNotFound) || !errors.As(err, &refused) || refused.Code != "NotFound" {
		t.Errorf("got %#v", err)
	}
	if _, err := gateway.PublishBundle(ctx, "x", []byte("{}")); !errors.Is(err, turnkeep.ErrUnprocessable) {
		t.Errorf("got %v", err)
	}
	if _, err := turnkeep.NewGateway(server.HTTP, "wrong", nil).Stats(ctx); !errors.Is(err, turnkeep.ErrUnauthorized) {
		t.Errorf("got %v", err)
	}
	if _, err := turnkeep.NewGateway("http://127.0.0.1:1", "", nil).Stats(ctx); !errors.Is(err, turnkeep.ErrConnect) {
		t.Errorf("got %v", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := gateway.Stats(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"turns":"many"`))
	}))
	defer odd.Close()
	if _, err := turnkeep.NewGateway(odd.URL, "", nil).Stats(ctx); !errors.Is(err, turnkeep.ErrProtocol) {
		t.Errorf("got %v", err)
	}
}

// Whatever answers 200 to everything, such as a login page, has published nothing.
func TestABundleIsPublishedOnlyIfTheGatewaySaysSo(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }))
	defer server.Close()
	isNew, err := turnkeep.NewGateway(server.URL, "", nil).PublishBundle(testContext(t), "b", []byte("{}"))
	if isNew || !errors.Is(err, turnkeep.ErrProtocol) {
		t.Errorf("got %v, %v", isNew, err)
	}
}
