package turnkeeptest_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"turnkeep.dev/go/internal/realserver"
	"turnkeep.dev/go/internal/wire"
	"turnkeep.dev/go/turnkeeptest"
)

// Every malformed vector is answered by both servers with its status, and the connection goes on or ends.
func TestMalformedFramesAreAnsweredAlike(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "frames", "malformed.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Name, Hex, Connection string
		Status                uint32
	}
	if err := json.Unmarshal(text, &vectors); err != nil {
		t.Fatal(err)
	}
	servers := map[string]string{
		"fake": turnkeeptest.Start(t).Addr(),
		"real": realserver.Start(t, "--no-auth").Addr,
	}
	for name, addr := range servers {
		for _, v := range vectors {
			t.Run(name+"/"+v.Name, func(t *testing.T) {
				frame, err := hex.DecodeString(v.Hex)
				if err != nil {
					t.Fatal(err)
				}
				checkRefusal(t, addr, frame, v.Status, v.Connection == "goes_on")
			})
		}
	}
}

func checkRefusal(t *testing.T, addr string, sent []byte, status uint32, goesOn bool) {
	t.Helper()
	socket, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if err := socket.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := socket.Write(sent); err != nil {
		t.Fatal(err)
	}
	response, err := receive(socket)
	failure, refused := response.(*wire.Failure)
	if err != nil || !refused || failure.Status != status {
		t.Fatalf("got %#v, %v, not %d", response, err, status)
	}
	if goesOn {
		if _, err := socket.Write(wire.AppendRequest(nil, 2, &wire.Hello{Empty: true})); err != nil {
			t.Fatal(err)
		}
		if response, err = receive(socket); err != nil || response.Type() != wire.TypeHello {
			t.Errorf("the connection does not go on: %#v, %v", response, err)
		}
		return
	}
	// A server that did not read all that was sent ends the connection with a reset.
	var timeout net.Error
	if _, err := socket.Read(make([]byte, 1)); err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("the connection goes on: %v", err)
	}
}

func receive(socket net.Conn) (wire.Response, error) {
	var head [wire.HeaderBytes]byte
	if _, err := io.ReadFull(socket, head[:]); err != nil {
		return nil, err
	}
	header := wire.ParseHeader(&head)
	payload := make([]byte, header.Len)
	if _, err := io.ReadFull(socket, payload); err != nil {
		return nil, err
	}
	return wire.DecodeResponse(header, payload, false)
}
