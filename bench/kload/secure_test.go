package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// secureEcho is echo over TLS, and the address with which kload trusts it.
func secureEcho(t *testing.T, size, limit int) address {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(ca, text, 0o600); err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	}
	hostPort := serveEcho(t, size, limit, func(conn net.Conn) net.Conn {
		return tls.Server(conn, config)
	})
	to, err := (&securityFlags{ca: ca}).secure(hostPort)
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func TestEngineSendsEverythingOnceOverTLS(t *testing.T) {
	for _, config := range []engineConfig{{threads: 1, inFlight: 1}, {threads: 2, inFlight: 4}} {
		result, err := drive(t, secureEcho(t, 10, 1000), 300, 20, config)
		if err != nil {
			t.Fatal(err)
		}
		if result.ops != 1500 || result.errors[codeNotCoordinator] != 500 {
			t.Errorf("%d requests, %v", result.ops, result.errors)
		}
	}
}

func TestEngineTakesFramesLargerThanItsBuffersOverTLS(t *testing.T) {
	to := secureEcho(t, 3*inputSize, 1000)
	result, err := drive(t, to, 4, 8<<20, engineConfig{threads: 1, inFlight: 2})
	if err != nil || result.ops != 20 {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestEngineSaysThatTheServerHungUpOverTLS(t *testing.T) {
	if _, err := drive(t, secureEcho(t, 10, 3), 300, 20, engineConfig{threads: 1, inFlight: 1}); err == nil {
		t.Error("no error")
	}
}

func TestConnectsCountsNewConnections(t *testing.T) {
	o := options{addr: secureEcho(t, 10, 1), conns: 2, duration: 50 * time.Millisecond}
	r, err := runConnects(o)
	if err != nil || r["ops"].(int64) == 0 || !strings.HasPrefix(r["tls"].(string), "TLS 1.3 ") {
		t.Errorf("%v, %v", r, err)
	}
}

func TestACertificateOfAnotherIsRefused(t *testing.T) {
	to := secureEcho(t, 10, 1)
	to.tls.RootCAs = x509.NewCertPool()
	if _, err := dial(to); err == nil {
		t.Error("no error")
	}
}
