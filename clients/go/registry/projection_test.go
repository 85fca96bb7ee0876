package registry

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"testing"
	"time"

	"turnkeep.dev/go/payload"
)

// call sends JSON and reads JSON; any other status than 200 or 201 fails the test.
func call(t *testing.T, method, address string, body any) map[string]any {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequest(method, address, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := httpClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil || response.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %d %s %v", method, address, response.StatusCode, answer, err)
	}
	var value map[string]any
	if err := json.Unmarshal(answer, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func sampleValue() Everything {
	return Everything{
		Flag: true, I8: -128, I16: -300, I32: -70000, I64: -1 << 62, U8: 200, U16: 60000, U32: 1 << 31, U64: 1<<64 - 1,
		F32: 1.5, F64: -0.1, Text: "*héllo*", Bytes: []byte{0, 255}, U64s: []uint64{0, 1 << 63},
		Links:    []Link{{Title: "one", Size: 1, Next: &Link{Title: "two", Size: 2}}},
		ByName:   map[string]Link{"z": {Title: "z"}, "aa": {Title: "aa"}, "b": {}},
		ByNumber: map[int64][][]byte{-5: {{1}}, 300: {}, 2: {{2}, {3}}},
		Blob:     payload.TypedBlob{TypeID: "test.Link", Version: 2, Payload: []byte{0x82, 1, 0xa1, 'x', 2, 9}},
		Any:      map[string]any{"a": []any{int64(1), nil, "x"}}, Link: Link{Title: "l"}, Role: 3, Roles: []Role{1, 4},
		AtMs: time.UnixMilli(1700000000123).UTC(), AtS: time.Unix(-1, 0).UTC(), Took: 1500 * time.Millisecond, Home: "https://example.com/",
		Blobs: []payload.TypedBlob{}, ByFlag: map[bool]uint64{true: 1, false: 0},
		ByBytes: map[payload.ByteString]any{"\xff": int64(1), "a": nil}, SignedRole: -1,
	}
}

// The server shows a Go value by names, and encodes what it shows to the very bytes that Go encoded.
func TestTheServerShowsGoValuesAndEncodesThemAlike(t *testing.T) {
	server := startServer(t)
	bundle := mustBundle(t, sampleTypes(), nil)
	if status, answer := publish(t, server, string(bundle.JSON())); status != added {
		t.Fatal(status, answer)
	}
	raw, err := payload.Marshal(sampleValue())
	if err != nil {
		t.Fatal(err)
	}
	context := call(t, http.MethodPost, server+"/v1/contexts", map[string]any{})["context_id"].(string)
	turns := server + "/v1/contexts/" + context + "/turns"
	turn := map[string]any{"type_id": "test.Everything", "type_version": 2, "payload_b64": base64.StdEncoding.EncodeToString(raw)}
	written := call(t, http.MethodPost, turns, turn)

	shown := call(t, http.MethodGet, server+"/v1/turns/"+written["turn_id"].(string), nil)
	data := shown["data"].(map[string]any)
	if shown["warnings"] != nil || len(data) != 30 {
		t.Fatalf("%v", shown)
	}
	for name, want := range map[string]any{"u64": "18446744073709551615", "role": "assistant", "roles": []any{"system", "tool"},
		"at_ms": "2023-11-14T22:13:20.123Z", "took": "1500", "signed_role": "below", "bytes": "AP8=", "i8": -128.0} {
		if !reflect.DeepEqual(data[name], want) {
			t.Errorf("%s is shown as %v, want %v", name, data[name], want)
		}
	}
	again := call(t, http.MethodPost, turns, map[string]any{"type_id": "test.Everything", "type_version": 2, "data": data})
	if again["content_hash_b3"] != written["content_hash_b3"] {
		t.Errorf("the server encodes the value to other bytes: %v and %v", again, written)
	}
}
