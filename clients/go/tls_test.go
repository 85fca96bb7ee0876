package turnkeep_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	turnkeep "turnkeep.dev/go"
	"turnkeep.dev/go/internal/realserver"
)

// selfSigned writes a certificate for 127.0.0.1 and its key.
func selfSigned(t *testing.T) (certificate *x509.Certificate, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "turnkeep test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if certificate, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, bytes []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return certificate, write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", secret)
}

func TestTLSIsSpokenWithATrustedServerOnly(t *testing.T) {
	ctx := testContext(t)
	certificate, certFile, keyFile := selfSigned(t)
	server := realserver.Start(t, "--tls-cert", certFile, "--tls-key", keyFile)
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	client := dial(t, server, turnkeep.WithTLS(&tls.Config{RootCAs: roots}))
	if _, err := client.CreateContext(ctx, turnkeep.NewContext{}); err != nil {
		t.Error(err)
	}
	_, err := turnkeep.Dial(ctx, server.Addr, turnkeep.WithTLS(&tls.Config{}), turnkeep.WithToken(server.Token))
	if !errors.Is(err, turnkeep.ErrConnect) {
		t.Errorf("an unknown authority: %v", err)
	}
	if _, err := turnkeep.Dial(ctx, server.Addr, turnkeep.WithToken(server.Token)); err == nil {
		t.Error("a TLS server is spoken to without TLS")
	}
}

func TestTheTokenIsNeeded(t *testing.T) {
	server := realserver.Start(t)
	for _, token := range []string{"", "wrong"} {
		_, err := turnkeep.Dial(testContext(t), server.Addr, turnkeep.WithToken(token))
		if !errors.Is(err, turnkeep.ErrUnauthorized) {
			t.Errorf("the token %q gives %v", token, err)
		}
	}
}
