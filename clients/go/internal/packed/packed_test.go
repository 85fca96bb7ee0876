package packed

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
)

func TestPackedBytesComeBack(t *testing.T) {
	var running sync.WaitGroup
	for _, size := range []int{0, 1, 1000, 5 << 20} {
		running.Add(1)
		go func() {
			defer running.Done()
			raw := bytes.Repeat([]byte("ab"), size)
			frame, err := Pack(raw)
			if err != nil {
				t.Error(err)
			}
			if got, err := Unpack(frame, uint32(len(raw))); err != nil || !bytes.Equal(got, raw) {
				t.Errorf("%d bytes do not come back: %v", len(raw), err)
			}
		}()
	}
	running.Wait()
}

func TestUnpackingIsBoundedByTheLength(t *testing.T) {
	bomb, err := Pack(make([]byte, 8<<20))
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []uint32{0, 10, 8<<20 - 1, 8<<20 + 1} {
		if _, err := Unpack(bomb, size); !errors.Is(err, ErrLength) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if _, err := Unpack(bomb, RawBytesMax+1); !errors.Is(err, ErrLength) || !strings.Contains(err.Error(), "limit") {
		t.Errorf("a length over the limit: %v", err)
	}
	for cut := range 20 {
		if _, err := Unpack(bomb[:cut], 8<<20); err == nil {
			t.Errorf("a frame of %d bytes is accepted", cut)
		}
	}
	if _, err := Unpack([]byte("no frame at all"), 5); err == nil || errors.Is(err, ErrLength) {
		t.Errorf("garbage gives %v", err)
	}
}
