// Package realserver runs the Turnkeep binary for tests.
//
// The binary is named by TURNKEEP_BIN; without it a test fails, it does not skip. A server has a temporary
// data directory, free loopback ports and ends with its test, also when the test fails or the test process
// dies.
package realserver

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// startTimeout bounds the wait for a server's first line.
const startTimeout = time.Minute

// Server is a running server.
type Server struct {
	// Addr is the address of the binary port, HTTP the base address of the HTTP port.
	Addr, HTTP string
	// Token opens both.
	Token string

	t       testing.TB
	data    string
	flags   []string
	process *os.Process
	exited  chan struct{}
}

// Start runs a server with further flags, and ends it with the test.
func Start(t testing.TB, flags ...string) *Server {
	t.Helper()
	s := &Server{t: t, data: filepath.Join(t.TempDir(), "store"), flags: flags}
	s.run("127.0.0.1:0", "127.0.0.1:0")
	token, err := os.ReadFile(filepath.Join(s.data, "token"))
	if err == nil {
		s.Token = strings.TrimSpace(string(token))
	}
	t.Cleanup(s.Kill)
	return s
}

// Binary is the path of the Turnkeep binary.
func Binary(t testing.TB) string {
	t.Helper()
	binary := os.Getenv("TURNKEEP_BIN")
	if binary == "" {
		t.Fatal("this test needs a server: run ./x test, or set TURNKEEP_BIN to the turnkeep binary")
	}
	return binary
}

// Kill ends the server with SIGKILL and waits until it is gone.
func (s *Server) Kill() {
	_ = s.process.Kill()
	<-s.exited
}

// Restart runs a killed server again, on the same data and ports.
func (s *Server) Restart() {
	s.t.Helper()
	s.run(s.Addr, strings.TrimPrefix(s.HTTP, "http://"))
}

func (s *Server) run(listen, http string) {
	s.t.Helper()
	args := append([]string{"up", "--json", "--data", s.data, "--listen", listen, "--http", http}, s.flags...)
	command := exec.Command(Binary(s.t), args...)
	command.SysProcAttr = dieWithParent()
	output, err := command.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	command.Stderr = os.Stderr
	started := make(chan error)
	s.exited = make(chan struct{})
	go watch(command, started, s.exited)
	if err := <-started; err != nil {
		s.t.Fatal(err)
	}
	s.process = command.Process
	overdue := time.AfterFunc(startTimeout, func() { _ = s.process.Kill() })
	defer overdue.Stop()
	line, err := bufio.NewReader(output).ReadBytes('\n')
	var announced struct{ TCP, HTTP string }
	if err == nil {
		err = json.Unmarshal(line, &announced)
	}
	if err != nil {
		s.Kill()
		s.t.Fatalf("the server did not say where it listens: %v", err)
	}
	s.Addr, s.HTTP = announced.TCP, "http://"+announced.HTTP
}

// watch starts the process and waits for it on one thread: the kernel ends the process with that thread.
func watch(command *exec.Cmd, started chan<- error, exited chan<- struct{}) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := command.Start()
	started <- err
	if err == nil {
		_, _ = command.Process.Wait()
	}
	close(exited)
}
