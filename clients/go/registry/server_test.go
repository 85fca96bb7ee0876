package registry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"turnkeep.dev/go/internal/realserver"
)

// startServer starts a real server that ends with the test, and returns its HTTP address.
func startServer(t *testing.T) string {
	t.Helper()
	return realserver.Start(t, "--no-auth", "--durability", "os").HTTP
}

var httpClient = &http.Client{Timeout: time.Minute}

// publish puts a bundle at the id that it contains and returns the status and the answer.
func publish(t *testing.T, server, text string) (int, string) {
	t.Helper()
	var contained struct {
		ID any `json:"bundle_id"`
	}
	id := "~b"
	if json.Unmarshal([]byte(text), &contained) == nil {
		if known, ok := contained.ID.(string); ok {
			id = known
		}
	}
	address := server + "/v1/registry/bundles/" + url.PathEscape(id)
	request, err := http.NewRequest(http.MethodPut, address, bytes.NewReader([]byte(text)))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := httpClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func TestTheServerGivesTheSameVerdicts(t *testing.T) {
	server := startServer(t)
	for number, c := range evolutions {
		t.Run(c.claim, func(t *testing.T) {
			last := len(c.bundles) - 1
			for i, text := range c.bundles {
				text = strings.ReplaceAll(text, "~", fmt.Sprintf("case%d.", number))
				status, answer := publish(t, server, text)
				if want := map[bool]int{true: c.status, false: added}[i == last]; status != want {
					t.Fatalf("the server says %d %s, want %d", status, answer, want)
				}
			}
		})
	}
}

func TestMutatedBundlesGetTheServersVerdict(t *testing.T) {
	const mutations = 1500
	sample, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "payloads", "sample-bundle.json"))
	if err != nil {
		t.Fatal(err)
	}
	server := startServer(t)
	var history History
	if status, err := history.verdict(string(sample)); status != added {
		t.Fatal(err)
	}
	if status, answer := publish(t, server, string(sample)); status != added {
		t.Fatal(answer)
	}
	random := rand.New(rand.NewPCG(3, 7))
	verdicts := map[int]int{}
	for i := range mutations {
		text := mutate(random, strings.Replace(string(sample), `"sample"`, fmt.Sprintf(`"mutant%d"`, i), 1))
		local, localErr := history.verdict(text)
		status, answer := publish(t, server, text)
		if local != status {
			t.Fatalf("mutation %d: we say %d (%v), the server %d %s\n%s", i, local, localErr, status, answer, text)
		}
		verdicts[status]++
	}
	if verdicts[added] == 0 || verdicts[illegal] == 0 || verdicts[broken] == 0 {
		t.Fatalf("the mutations show too little: %v", verdicts)
	}
}

// mutate makes one change: another word of the same language, another number, or another byte.
func mutate(random *rand.Rand, text string) string {
	swaps := [][2]string{{`"u64"`, `"u32"`}, {`"3": {`, `"2": {`}, {`"2": {`, `"3": {`}, {`"1": {`, `"9": {`}, {`"name"`, `"nam"`},
		{`"link"`, `"links"`}, {`"test.Link"`, `"test.Lint"`}, {`"array"`, `"map"`}, {`"string"`, `"any"`}, {`"optional": true`, `"optional": 1`},
		{`"tombstone": true`, `"tombstone": false`}, {`"test.Role"`, `"test.Signed"`}, {`"unix_ms"`, `"unix_s"`}, {`"tool"`, `"tools"`},
		{`"4": "tool"`, `"5": "tool"`}, {`{ "1": "system"`, `{ "0": "x", "1": "system"`}, {`"items": "u64"`, `"items": {"type":"u64"}`}}
	if random.IntN(2) == 0 {
		swap := swaps[random.IntN(len(swaps))]
		parts := strings.Split(text, swap[0])
		if len(parts) < 2 {
			return text
		}
		at := 1 + random.IntN(len(parts)-1)
		return strings.Join(parts[:at], swap[0]) + swap[1] + strings.Join(parts[at:], swap[0])
	}
	const bytes = "0123456789{}[]\":,aut\\ -."
	changed := []byte(text)
	changed[random.IntN(len(changed))] = bytes[random.IntN(len(bytes))]
	return string(changed)
}
