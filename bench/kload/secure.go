package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
)

// address says where the server is, and what a connection needs before its first request.
type address struct {
	hostPort string
	tls      *tls.Config // nil: plain
	login    *login      // nil: nobody
}

// securityFlags are the options that turn an address into one with TLS and SASL.
type securityFlags struct {
	ca, certificate, key      string
	mechanism, user, password string
}

func (f *securityFlags) define(flags *flag.FlagSet) {
	flags.StringVar(&f.ca, "tls-ca", "", "use TLS; file with the certificates to trust (PEM)")
	flags.StringVar(&f.certificate, "tls-cert", "", "file with kload's own certificate (PEM)")
	flags.StringVar(&f.key, "tls-key", "", "file with the key of that certificate (PEM)")
	flags.StringVar(&f.mechanism, "sasl", "", "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512")
	flags.StringVar(&f.user, "sasl-user", "", "user of SASL")
	flags.StringVar(&f.password, "sasl-password", "", "its password, of a server for measurements")
}

// secure returns the address with what the options ask for.
func (f *securityFlags) secure(hostPort string) (address, error) {
	to := address{hostPort: hostPort}
	if f.mechanism != "" {
		var err error
		if to.login, err = newLogin(f.mechanism, f.user, f.password); err != nil {
			return to, err
		}
	}
	if f.ca == "" {
		if f.certificate != "" {
			return to, errors.New("-tls-cert needs -tls-ca")
		}
		return to, nil
	}
	trusted, err := os.ReadFile(f.ca)
	if err != nil {
		return to, err
	}
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return to, err
	}
	// Every handshake is a full one: without a cache of sessions none is resumed. One curve, so
	// that all servers do the same.
	to.tls = &tls.Config{
		RootCAs:          x509.NewCertPool(),
		ServerName:       host,
		CurvePreferences: []tls.CurveID{tls.X25519},
	}
	if !to.tls.RootCAs.AppendCertsFromPEM(trusted) {
		return to, fmt.Errorf("no certificate in %s", f.ca)
	}
	if f.certificate != "" {
		own, err := tls.LoadX509KeyPair(f.certificate, f.key)
		if err != nil {
			return to, err
		}
		to.tls.Certificates = []tls.Certificate{own}
	}
	return to, nil
}

// describe names the protocol and the cipher suite that a server chose; empty without TLS.
func (c *client) describeTLS() string {
	if c.tls == nil {
		return ""
	}
	chosen := c.tls.ConnectionState()
	return tls.VersionName(chosen.Version) + " " + tls.CipherSuiteName(chosen.CipherSuite)
}

// seam is where TLS meets the socket. It passes bytes on until the engine takes the socket over;
// from then on they wait in memory, and the engine carries them.
type seam struct {
	net.Conn
	isDetached bool
	in, out    []byte
}

func (s *seam) Read(b []byte) (int, error) {
	if !s.isDetached {
		return s.Conn.Read(b)
	}
	if len(s.in) == 0 {
		return 0, errNothingYet
	}
	n := copy(b, s.in)
	s.in = s.in[n:]
	return n, nil
}

func (s *seam) Write(b []byte) (int, error) {
	if !s.isDetached {
		return s.Conn.Write(b)
	}
	s.out = append(s.out, b...)
	return len(b), nil
}

// takeOut returns what is to be sent; it is valid until the next write.
func (s *seam) takeOut() []byte {
	out := s.out
	s.out = s.out[:0]
	return out
}

// nothingYet is a temporary error, after which a TLS connection can be read again.
type nothingYet struct{}

func (nothingYet) Error() string   { return "nothing to read yet" }
func (nothingYet) Timeout() bool   { return true }
func (nothingYet) Temporary() bool { return true }

var errNothingYet net.Error = nothingYet{}
