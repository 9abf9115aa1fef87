package config

import (
	"encoding/hex"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// shape brings a string into the form of its key: the text to use, or why it is
// wrong. Texts that may hold a secret are not repeated in the reason.
func shape(form, s string) (text, why, hint string) {
	text = s
	switch form {
	case "path":
		why, hint = checkPath(s)
	case "clock":
		if _, err := time.Parse("15:04", s); err != nil {
			why, hint = show(s)+" is not a time of day", `for example "03:40"`
		}
	case "listen":
		text, why, hint = listenAddress(s)
	case "hostport":
		why, hint = checkHostPort(s)
	case "host":
		why, hint = checkHost(s)
	case "url":
		why, hint = checkURL(s, "http", "https")
	case "https":
		why, hint = checkURL(s, "https")
	case "base":
		text = strings.TrimRight(s, "/")
		why, hint = checkBase(s)
	case "proxy":
		why, hint = checkURL(s, "http", "https", "socks5", "socks5h")
	case "word":
		if len(s) > 64 || strings.ContainsFunc(s, func(r rune) bool { return !wordRune(r) }) {
			why, hint = show(s)+" is not a usable name", "1 to 64 letters, digits, -, _ and ."
		}
	case "regexp":
		if _, err := regexp.Compile(s); err != nil {
			why, hint = strings.TrimPrefix(err.Error(), "error parsing regexp: "), "the syntax is RE2"
		}
	case "command":
		why, hint = checkCommand(s)
	case "kind":
		if !validName(s, 64) || strings.ToLower(s) != s {
			why, hint = show(s)+" is not a kind of update", "for example message, callback_query"
		}
	case "method":
		if s != "*" && !validName(s, 64) {
			why, hint = show(s)+" is not a method", "for example sendMessage"
		}
	case "sha256":
		text = strings.ToLower(s)
		if sum, err := hex.DecodeString(s); err != nil || len(sum) != 32 {
			why, hint = "not a SHA-256 in hex", "64 hex digits, made by tgspool client add; never the token itself"
		}
	}
	return text, why, hint
}

// wordRune reports whether a rune may stand in the name of a handler or client.
func wordRune(r rune) bool {
	return r == '-' || r == '.' || r < 0x80 && validName(string(r), 1)
}

// checkPath checks the name of a file. A token in the place of a file's name is
// a common slip, so it is named, and not shown.
func checkPath(s string) (why, hint string) {
	switch {
	case tokenLike.MatchString(s):
		return "looks like a token, not like a file", "put the token into a file and name that file here"
	case strings.ContainsRune(s, 0):
		return "holds a NUL", ""
	case strings.HasPrefix(s, "~"):
		return "~ is not expanded", "write the whole path"
	}
	return "", ""
}

// listenAddress checks unix:/path or tcp:host:port.
func listenAddress(s string) (text, why, hint string) {
	const example = `"unix:/run/tgspool/tgspool.sock" or "tcp:127.0.0.1:8081"`
	network, address, _ := strings.Cut(s, ":")
	switch network {
	case "unix":
		// The kernel takes 107 bytes and a NUL.
		if !filepath.IsAbs(address) || len(address) > 107 || strings.ContainsRune(address, 0) {
			return s, show(s) + " is not the path of a socket", "unix: and an absolute path of at most 107 bytes"
		}
		return "unix:" + filepath.Clean(address), "", ""
	case "tcp":
		why, hint = checkHostPort(address)
		return s, why, hint
	}
	if filepath.IsAbs(s) {
		return s, show(s) + " is not an address", "write " + show("unix:"+s)
	}
	if why, _ := checkHostPort(s); why == "" {
		return s, show(s) + " is not an address", "write " + show("tcp:"+s)
	}
	return s, show(s) + " is not an address", example
}

// checkHostPort checks host:port. The host may be empty, for every interface;
// the port may be 0, for any that is free.
func checkHostPort(s string) (why, hint string) {
	const example = "host:port, for example 127.0.0.1:8443 or [::1]:8443"
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return show(s) + " is not a TCP address", example
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return show(s) + " has no usable port", "0 to 65535"
	}
	if host != "" {
		if why, _ := checkHost(host); why != "" {
			return show(s) + " has no usable host", example
		}
	}
	return "", ""
}

// checkHost checks a host name or an IP address, without port.
func checkHost(s string) (why, hint string) {
	if _, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return "", ""
	}
	bad := func(r rune) bool { return r != '.' && r != '-' && (r >= 0x80 || !validName(string(r), 1)) }
	if len(s) > 253 || strings.ContainsFunc(s, bad) || strings.Trim(s, ".-") == "" {
		return show(s) + " is not a host", "a name or address alone, without scheme, port or path"
	}
	return "", ""
}

// checkURL checks an absolute URL. It is never shown: a URL may carry a
// password or be a secret as a whole.
func checkURL(s string, schemes ...string) (why, hint string) {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' }) {
		return "not a URL", "it begins with " + strings.Join(schemes, ":// or ") + ":// and a host"
	}
	if !slices.Contains(schemes, u.Scheme) {
		return "not a URL that can be used here", "it begins with " + strings.Join(schemes, ":// or ") + "://"
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return "not a URL: the port is out of range", "1 to 65535"
		}
	}
	return "", ""
}

// checkBase checks the address of a Bot API server, to which /bot<token>/ will
// be added.
func checkBase(s string) (why, hint string) {
	if why, hint := checkURL(s, "http", "https"); why != "" {
		return why, hint
	}
	u, err := url.Parse(s)
	if err != nil || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "must be scheme, host and path alone", "for example https://api.telegram.org"
	}
	if strings.Contains(u.Path, "/bot") {
		return "must not hold the token or the method", "for example https://api.telegram.org"
	}
	return "", ""
}

// checkCommand checks a bot command as a user types it.
func checkCommand(s string) (why, hint string) {
	name, slash := strings.CutPrefix(s, "/")
	switch {
	case !slash:
		return show(s) + " is not a command", "a command begins with a slash: " + show("/"+s)
	case strings.Contains(name, "@"):
		return show(s) + " is not a command", "without the bot's name; /x@ourname is matched too"
	case !validName(name, 32):
		return show(s) + " is not a command", "a slash and 1 to 32 letters, digits and _"
	}
	return "", ""
}
