package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"
)

// vector is an entry of testdata/frames; its README says what the keys mean.
type vector struct {
	Name         string          `json:"name"`
	MsgType      MsgType         `json:"msg_type"`
	Flags        uint16          `json:"flags"`
	ReqID        number          `json:"req_id"`
	RequestFlags uint16          `json:"request_flags"`
	Fields       json.RawMessage `json:"fields"`
	Hex          hexBytes        `json:"hex"`
	Error        Class           `json:"error"`
}

// number is a u64 as decimal text.
type number uint64

func (n *number) UnmarshalJSON(text []byte) error {
	var decimal string
	if err := json.Unmarshal(text, &decimal); err != nil {
		return err
	}
	parsed, err := strconv.ParseUint(decimal, 10, 64)
	*n = number(parsed)
	return err
}

type hexBytes []byte

func (b *hexBytes) UnmarshalText(text []byte) (err error) {
	*b, err = hex.DecodeString(string(text))
	return err
}

type hexHash Hash

func (h *hexHash) UnmarshalText(text []byte) error {
	decoded, err := hex.DecodeString(string(text))
	copy(h[:], decoded)
	return err
}

func load(t *testing.T, file string) []vector {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "testdata", "frames", file))
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) < 20 {
		t.Fatalf("%s has only %d entries", file, len(vectors))
	}
	return vectors
}

func split(t *testing.T, frame []byte) (Header, []byte) {
	t.Helper()
	header := ParseHeader((*[HeaderBytes]byte)(frame))
	if int(header.Len) != len(frame)-HeaderBytes {
		t.Fatalf("the header says %d bytes, the frame has %d", header.Len, len(frame)-HeaderBytes)
	}
	return header, frame[HeaderBytes:]
}

func TestGoldenRequestsEncodeToTheByteAndDecodeByValue(t *testing.T) {
	for _, v := range load(t, "requests.json") {
		t.Run(v.Name, func(t *testing.T) {
			want := requestOf(t, v)
			if got := AppendRequest(nil, uint64(v.ReqID), want); !bytes.Equal(got, v.Hex) {
				t.Errorf("encodes to\n%x, not to\n%x", got, []byte(v.Hex))
			}
			header, payload := split(t, v.Hex)
			got, err := DecodeRequest(header, payload)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("decodes to\n%#v, %v, not to\n%#v", got, err, want)
			}
		})
	}
}

func TestGoldenResponsesEncodeToTheByteAndDecodeByValue(t *testing.T) {
	for _, v := range load(t, "responses.json") {
		t.Run(v.Name, func(t *testing.T) {
			want := responseOf(t, v)
			if got := AppendResponse(nil, uint64(v.ReqID), want); !bytes.Equal(got, v.Hex) {
				t.Errorf("encodes to\n%x, not to\n%x", got, []byte(v.Hex))
			}
			header, payload := split(t, v.Hex)
			got, err := DecodeResponse(header, payload, v.RequestFlags&flagExtended != 0)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("decodes to\n%#v, %v, not to\n%#v", got, err, want)
			}
		})
	}
}

func TestMalformedRequestsAreRefusedByClass(t *testing.T) {
	for _, v := range load(t, "malformed.json") {
		t.Run(v.Name, func(t *testing.T) {
			header := ParseHeader((*[HeaderBytes]byte)(v.Hex))
			err := CheckLength(header, FrameBytesMax)
			if err == nil {
				_, err = DecodeRequest(split(t, v.Hex))
			}
			var refused *DecodeError
			if !errors.As(err, &refused) || refused.Class != v.Error {
				t.Errorf("got %v, not the class %s", err, v.Error)
			}
		})
	}
}

// Every cut and every lengthened response must be refused, or be another whole message; never a crash.
func TestCutAndLengthenedFramesAreRefused(t *testing.T) {
	for _, v := range load(t, "responses.json") {
		header, payload := split(t, v.Hex)
		extended := v.RequestFlags&flagExtended != 0
		for cut := range payload {
			_, err := DecodeResponse(header, payload[:cut], extended)
			acceptance := header.Type == TypeSubscribe && cut == 0
			if err == nil && !acceptance {
				t.Errorf("%s, cut to %d bytes, is accepted", v.Name, cut)
			}
		}
		if _, err := DecodeResponse(header, append(bytes.Clone(payload), 0), extended); err == nil {
			t.Errorf("%s with a byte more is accepted", v.Name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(uint16(6), uint16(4), []byte{1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, msgType, flags uint16, payload []byte) {
		header := Header{Len: uint32(len(payload)), Type: MsgType(msgType), Flags: flags, ReqID: 1}
		if request, err := DecodeRequest(header, payload); err == nil {
			if got := AppendRequest(nil, 1, request); !bytes.Equal(got[HeaderBytes:], payload) {
				t.Errorf("a request encodes back to other bytes: %x, %x", got[HeaderBytes:], payload)
			}
		}
		extended := flags&flagExtended != 0
		header.Flags &= flagCaughtUp
		if response, err := DecodeResponse(header, payload, extended); err == nil {
			if got := AppendResponse(nil, 1, response); !bytes.Equal(got[HeaderBytes:], payload) {
				t.Errorf("a response encodes back to other bytes: %x, %x", got[HeaderBytes:], payload)
			}
		}
	})
}
