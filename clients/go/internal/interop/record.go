package main

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"

	"turnkeep.dev/go/payload"
)

// record is interop.Record version 1.
type record struct {
	Text    string `turnkeep:"1,omitempty"`
	Count   uint64 `turnkeep:"2,omitempty"`
	Change  int64  `turnkeep:"3,omitempty"`
	Bytes   []byte `turnkeep:"4,omitempty"`
	Unknown payload.Unknown
}

// jsonRecord is a record as the driver writes and compares it.
type jsonRecord struct {
	Text   string `json:"text"`
	Count  string `json:"count"`
	Change string `json:"change"`
	Bytes  string `json:"bytes"`
}

// writeCase is a case, as far as writing it goes.
type writeCase struct {
	Name  string `json:"name"`
	Write struct {
		Record *jsonRecord `json:"record"`
		Bytes  string      `json:"bytes"`
		Noise  int         `json:"noise"`
		Zeros  int         `json:"zeros"`
	} `json:"write"`
}

func readCases(file string) ([]writeCase, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var cases []writeCase
	err = json.Unmarshal(text, &cases)
	return cases, err
}

func (c writeCase) payload() ([]byte, error) {
	if c.Write.Record != nil {
		return c.Write.Record.encode()
	}
	bytes, err := hex.DecodeString(c.Write.Bytes)
	if err != nil {
		return nil, err
	}
	bytes = append(bytes, make([]byte, c.Write.Zeros)...)
	state := uint32(1)
	for range c.Write.Noise {
		state = 1664525*state + 1013904223
		bytes = append(bytes, byte(state>>24))
	}
	return bytes, nil
}

func (r jsonRecord) encode() ([]byte, error) {
	count, err := strconv.ParseUint(r.Count, 10, 64)
	if err != nil {
		return nil, err
	}
	change, err := strconv.ParseInt(r.Change, 10, 64)
	if err != nil {
		return nil, err
	}
	bytes, err := hex.DecodeString(r.Bytes)
	if err != nil {
		return nil, err
	}
	return payload.Marshal(record{Text: r.Text, Count: count, Change: change, Bytes: bytes})
}

// decoded returns a payload's record and the payload that the record encodes to.
func decoded(bytes []byte) (*jsonRecord, *string, error) {
	var r record
	if err := payload.Unmarshal(bytes, &r); err != nil {
		return nil, nil, err
	}
	again, err := payload.Marshal(r)
	if err != nil {
		return nil, nil, err
	}
	reencoded := hex.EncodeToString(again)
	shown := &jsonRecord{
		Text:   r.Text,
		Count:  strconv.FormatUint(r.Count, 10),
		Change: strconv.FormatInt(r.Change, 10),
		Bytes:  hex.EncodeToString(r.Bytes),
	}
	return shown, &reencoded, nil
}
