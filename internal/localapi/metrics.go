package localapi

import (
	"net/http"
	"net/netip"
)

// metrics decides who may read the figures at an address: on a socket whoever may
// manage, over TCP programs of this machine, and from elsewhere who has the bearer
// token of api.admin_token_file. They hold no text and no chat.
func (s *Server) metrics(e Endpoint, unix bool) http.Handler {
	all := Endpoint{Serve: []string{RoleManage}}
	switch {
	case !e.serves(RoleMetrics) && (!unix || !e.serves(RoleManage)):
		return refuse("the figures are not served at this address")
	case unix:
		return byPeer(all, s.manage)
	}
	others := s.byBearer(all, s.manage)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fromHere(r) {
			s.manage.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	})
}

// fromHere reports whether a program of this machine asks. A proxy is one, too,
// but whoever is behind it may not be.
func fromHere(r *http.Request) bool {
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Real-Ip"} {
		if r.Header.Get(name) != "" {
			return false
		}
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback()
}
