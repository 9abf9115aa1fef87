package localapi

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/tgspool/tgspool/internal/manage"
)

const wrongHost = "tgspool: this Host is none of this machine; api.hosts names others"

// onlyOwnHosts guards all that is served over TCP against web pages whose name
// is made to mean this machine: their requests bear their own name.
func (s *Server) onlyOwnHosts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case knowsHost(r, *s.hosts.Load()):
			next.ServeHTTP(w, r)
		case managed(r.URL.Path):
			manage.WriteProblem(w, r, http.StatusForbidden, wrongHost)
		default:
			body := botError(http.StatusForbidden, "Forbidden: "+wrongHost)
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", strconv.Itoa(len(body)))
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(body)) // whoever asked may have gone
		}
	})
}

// knowsHost reports whether a request names this machine: by a name of its own,
// by the address that was called, or by a name of the settings.
func knowsHost(r *http.Request, names []string) bool {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host == "" || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true // none at all is what no browser sends
	}
	if slices.ContainsFunc(names, func(h string) bool { return strings.EqualFold(strings.TrimSuffix(h, "."), host) }) {
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	if ip.Unmap().IsLoopback() {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && local.AddrPort().Addr().Unmap() == ip.Unmap()
}

// botError is an error in the Bot API's shape.
func botError(code int, description string) string {
	return `{"ok":false,"error_code":` + strconv.Itoa(code) + `,"description":` + strconv.Quote(description) + `}`
}
