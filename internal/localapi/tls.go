package localapi

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync/atomic"
)

// certificate is that of one address, read from its files.
type certificate struct {
	certFile, keyFile string
	now               atomic.Pointer[tls.Certificate]
}

// load reads the files. When it fails the certificate in use stays.
func (c *certificate) load() error {
	cert, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("reading certificate %q with key %q: %w", c.certFile, c.keyFile, err)
	}
	c.now.Store(&cert)
	return nil
}

// config offers HTTP/1.1 alone: only there the errors before a handler have a
// shape of ours, and uploads need no second flow control.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.now.Load(), nil },
	}
}

// ReloadTLS reads all certificates again, as after a renewal. Those that can't
// be read stay as they are, and are in the error.
func (s *Server) ReloadTLS() error {
	var errs []error
	for _, f := range s.faces {
		if f.cert != nil {
			errs = append(errs, f.cert.load())
		}
	}
	return errors.Join(errs...)
}

// tlsListener hands out connections with TLS. The handshake is made by the first
// read, within the time for a request's header.
type tlsListener struct {
	net.Listener

	config *tls.Config
}

// Accept waits for the next connection.
func (l tlsListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return tlsConn{tls.Server(conn, l.config)}, nil
}

// tlsConn is a connection whose errors have the Bot API's shape.
type tlsConn struct{ *tls.Conn }

const plainToTLS = "tgspool: this address speaks HTTPS only"

// Read reads, and answers whoever speaks plain HTTP in a way he understands.
func (c tlsConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if broken, ok := errors.AsType[tls.RecordHeaderError](err); ok && broken.Conn != nil {
		body := botError(400, "Bad Request: "+plainToTLS)
		_, _ = io.WriteString(broken.Conn, "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: "+
			strconv.Itoa(len(body))+"\r\nConnection: close\r\n\r\n"+body)
		_ = broken.Conn.Close()
	}
	return n, err
}

// Write is shapedConn's.
func (c tlsConn) Write(p []byte) (int, error) { return writeShaped(c.Conn, p) }
