package main

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"hash"
	"strconv"
	"strings"
)

const (
	apiSaslHandshake    = 17
	apiSaslAuthenticate = 36
)

// login is the SASL exchange at the beginning of a connection.
type login struct {
	mechanism, user, password string
	newHash                   func() hash.Hash // nil: PLAIN
}

func newLogin(mechanism, user, password string) (*login, error) {
	l := &login{mechanism: mechanism, user: user, password: password}
	switch mechanism {
	case "PLAIN":
	case "SCRAM-SHA-256":
		l.newHash = sha256.New
	case "SCRAM-SHA-512":
		l.newHash = sha512.New
	default:
		return nil, fmt.Errorf("no such mechanism: %s", mechanism)
	}
	return l, nil
}

// authenticate makes the exchange, or says with what error the server refused.
func (l *login) authenticate(c *client) error {
	payload, err := c.roundTrip(encodeSaslHandshake(l.mechanism))
	if err != nil {
		return err
	}
	if r := (&reader{b: payload[4:]}); r.int16() != codeNone {
		return fmt.Errorf("the server does not take %s", l.mechanism)
	}
	if l.newHash == nil {
		_, err = c.saslStep("\x00" + l.user + "\x00" + l.password)
		return err
	}
	return l.scram(c)
}

// scram is RFC 5802 without channel binding.
func (l *login) scram(c *client) error {
	var random [18]byte
	rand.Read(random[:])
	nonce := base64.StdEncoding.EncodeToString(random[:])
	escaped := strings.NewReplacer("=", "=3D", ",", "=2C").Replace(l.user)
	first := "n=" + escaped + ",r=" + nonce
	challenge, err := c.saslStep("n,," + first)
	if err != nil {
		return err
	}
	said := attributes(challenge)
	salt, err := base64.StdEncoding.DecodeString(said["s"])
	if err != nil {
		return fmt.Errorf("SCRAM: salt: %w", err)
	}
	iterations, err := strconv.Atoi(said["i"])
	if err != nil || !strings.HasPrefix(said["r"], nonce) {
		return fmt.Errorf("SCRAM: the server said %q", challenge)
	}
	salted, err := pbkdf2.Key(l.newHash, l.password, salt, iterations, l.newHash().Size())
	if err != nil {
		return err
	}
	last := "c=biws,r=" + said["r"]
	signed := first + "," + challenge + "," + last
	key := l.sign(salted, "Client Key")
	stored := l.newHash()
	stored.Write(key)
	proof := l.sign(stored.Sum(nil), signed)
	for i := range proof {
		proof[i] ^= key[i]
	}
	answer, err := c.saslStep(last + ",p=" + base64.StdEncoding.EncodeToString(proof))
	if err != nil {
		return err
	}
	wanted := l.sign(l.sign(salted, "Server Key"), signed)
	if attributes(answer)["v"] != base64.StdEncoding.EncodeToString(wanted) {
		return fmt.Errorf("SCRAM: the server does not know the password")
	}
	return nil
}

func (l *login) sign(key []byte, text string) []byte {
	mac := hmac.New(l.newHash, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// attributes are those of a message like "r=...,s=...,i=4096".
func attributes(message string) map[string]string {
	found := map[string]string{}
	for _, word := range strings.Split(message, ",") {
		name, value, _ := strings.Cut(word, "=")
		found[name] = value
	}
	return found
}

// saslStep sends one token of the client and returns that of the server.
func (c *client) saslStep(token string) (string, error) {
	payload, err := c.roundTrip(encodeSaslAuthenticate(token))
	if err != nil {
		return "", err
	}
	r := newAnswer(payload)
	code, message, answer := r.int16(), r.string(), r.string()
	if code != codeNone {
		return "", fmt.Errorf("authentication: error %d %s", code, message)
	}
	return answer, r.err()
}

// encodeSaslHandshake has the encoding from before the flexible one.
func encodeSaslHandshake(mechanism string) []byte {
	w := &writer{b: make([]byte, 4, 64)}
	w.int16(apiSaslHandshake)
	w.int16(1)
	w.int32(0)
	for _, text := range []string{clientID, mechanism} {
		w.int16(int16(len(text)))
		w.b = append(w.b, text...)
	}
	return w.sized()
}

func encodeSaslAuthenticate(token string) []byte {
	w := newRequest(apiSaslAuthenticate, 2)
	w.string(token)
	return w.frame()
}
