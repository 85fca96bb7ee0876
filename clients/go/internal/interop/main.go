// Command interop is the Go side of the interoperability matrix. clients/interop/README.md describes its
// commands.
package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strconv"
	"time"

	turnkeep "turnkeep.dev/go"
)

const (
	// recordType is the type of the cases.
	recordType = "interop.Record"
	// shownBytesMax is the size up to which payloads are reported whole.
	shownBytesMax = 4096
	// patience is far more than any command needs.
	patience = 2 * time.Minute
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	report, err := run(ctx, os.Args[1:])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(report)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) (any, error) {
	switch {
	case len(args) == 3 && args[0] == "write" && args[2] == "none":
		return write(ctx, args[1])
	case len(args) == 3 && args[0] == "write" && args[2] == "zstd":
		return write(ctx, args[1], turnkeep.WithZstd(0))
	case len(args) == 2 && args[0] == "read":
		return read(ctx, args[1])
	}
	return nil, errors.New("usage: interop write FILE none|zstd, or interop read CONTEXT")
}

func dial(ctx context.Context, options ...turnkeep.Option) (*turnkeep.Client, error) {
	options = append(options, turnkeep.WithToken(os.Getenv("TURNKEEP_TOKEN")), turnkeep.WithVerify())
	return turnkeep.Dial(ctx, os.Getenv("TURNKEEP_ADDR"), options...)
}

func write(ctx context.Context, file string, options ...turnkeep.Option) (any, error) {
	cases, err := readCases(file)
	if err != nil {
		return nil, err
	}
	client, err := dial(ctx, options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	created, err := client.CreateContext(ctx, turnkeep.NewContext{})
	if err != nil {
		return nil, err
	}
	for _, c := range cases {
		payload, err := c.payload()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		turn := turnkeep.Msgpack(recordType, 1, payload)
		if _, err := client.Append(ctx, turnkeep.Append{Context: created.Context, Turn: turn, Key: c.Name}); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	return map[string]string{"context_id": created.Context.String()}, nil
}

func read(ctx context.Context, contextID string) (any, error) {
	id, err := strconv.ParseUint(contextID, 10, 64)
	if err != nil {
		return nil, err
	}
	client, err := dial(ctx)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	history := func(r turnkeep.Read) iter.Seq2[turnkeep.Turn, error] {
		return client.History(ctx, turnkeep.ContextID(id), r)
	}
	plain, stop := iter.Pull2(history(turnkeep.Read{Payload: true}))
	defer stop()
	turns := []turnReport{}
	for stored, err := range history(turnkeep.Read{Payload: true, Stored: true}) {
		if err != nil {
			return nil, err
		}
		again, err, more := plain()
		if err != nil {
			return nil, err
		}
		if !more {
			return nil, fmt.Errorf("turn %v is there only in its stored form", stored.ID)
		}
		report, err := reportOf(stored, again)
		if err != nil {
			return nil, fmt.Errorf("turn %v: %w", stored.ID, err)
		}
		turns = append(turns, report)
	}
	slices.Reverse(turns)
	return turns, nil
}

// turnReport has the fields of a turn that the driver compares.
type turnReport struct {
	TypeID            string      `json:"type_id"`
	TypeVersion       uint32      `json:"type_version"`
	Encoding          uint32      `json:"encoding"`
	Depth             uint32      `json:"depth"`
	UncompressedLen   uint32      `json:"uncompressed_len"`
	ContentHash       string      `json:"content_hash"`
	StoredCompression int         `json:"stored_compression"`
	Blake3            string      `json:"blake3"`
	Payload           *string     `json:"payload"`
	Record            *jsonRecord `json:"record"`
	Reencoded         *string     `json:"reencoded"`
}

// reportOf reports a turn that was read in both forms, which must agree.
func reportOf(stored, plain turnkeep.Turn) (turnReport, error) {
	payload, err := stored.Raw()
	if err != nil {
		return turnReport{}, err
	}
	if plain.Zstd || !bytes.Equal(payload, plain.Payload) {
		return turnReport{}, errors.New("its two forms differ")
	}
	report := turnReport{
		TypeID: stored.Type.ID, TypeVersion: stored.Type.Version, Encoding: stored.Encoding, Depth: stored.Depth,
		UncompressedLen: stored.Size, ContentHash: stored.Hash.String(), Blake3: turnkeep.HashOf(payload).String(),
	}
	if stored.Zstd {
		report.StoredCompression = 1
	}
	if len(payload) > shownBytesMax {
		return report, nil
	}
	shown := hex.EncodeToString(payload)
	report.Payload = &shown
	if len(payload) > 0 && stored.Type.ID == recordType {
		report.Record, report.Reencoded, err = decoded(payload)
	}
	return report, err
}
