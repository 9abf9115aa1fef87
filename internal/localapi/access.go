package localapi

import (
	"fmt"
	"math"
	"net/http"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tgspool/tgspool/internal/manage"
)

// submitGroup may post jobs on a socket that serves no more than that.
const submitGroup = "tgspool-send"

// Login is what a bearer token allows.
type Login struct {
	// Admin may do everything.
	Admin bool
	// Caller may do what its limits say; nil with Admin, or when the token is
	// nobody's.
	Caller *manage.Caller
	// Wait is how long to turn callers away after too many wrong tokens; 0: not.
	Wait time.Duration
}

// submitters finds the group's id; false when this machine has no such group.
func submitters() (gid int, ok bool) {
	g, err := user.LookupGroup(submitGroup)
	if err != nil {
		return 0, false
	}
	gid, err = strconv.Atoi(g.Gid)
	return gid, err == nil
}

// giveToSubmitters lets the group connect to a socket that we have made. Where
// that can't be, the daemon's own group still may.
func giveToSubmitters(path string) {
	if gid, ok := submitters(); ok {
		_ = os.Chown(path, -1, gid)
	}
}

// byPeer lets those in whom the kernel vouches for: managers to everything where
// that is served, the others to posting and to what they have posted.
func byPeer(e Endpoint, next http.Handler) http.Handler {
	uid, gid := uint32(os.Geteuid()), uint32(os.Getegid())
	group, known := submitters()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, ok := r.Context().Value(peerKey{}).(peer)
		manager := ok && p.mayManage(uid, gid)
		submitter := manager || ok && known && slices.Contains(p.groups, uint32(group))
		switch {
		case manager && e.serves(RoleManage):
			next.ServeHTTP(w, r)
		case submitter && e.serves(RoleSubmit):
			origin := "submit:" + strconv.FormatUint(uint64(p.uid), 10)
			next.ServeHTTP(w, manage.As(r, &manage.Caller{Name: "this socket", Origins: []string{origin}}))
		case e.serves(RoleSubmit):
			manage.WriteProblem(w, r, http.StatusForbidden, "only root, the daemon's user and group, and the group "+submitGroup+" may do this")
		default:
			manage.WriteProblem(w, r, http.StatusForbidden, "only root, the daemon's user and its group may do this")
		}
	})
}

const noLogin = "over TCP the management API needs a bearer token: that of api.admin_token_file, or for jobs and notify a client's"

// byBearer lets those in who have a token.
func (s *Server) byBearer(e Endpoint, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		var who Login
		if strings.EqualFold(scheme, "Bearer") && s.bearer != nil {
			who = s.bearer(strings.TrimSpace(token))
		}
		switch {
		case who.Admin && e.serves(RoleManage):
			next.ServeHTTP(w, r)
		case who.Admin:
			next.ServeHTTP(w, manage.As(r, &manage.Caller{Name: "this address", Origins: []string{"submit:admin"}}))
		case who.Caller != nil:
			next.ServeHTTP(w, manage.As(r, who.Caller))
		case who.Wait > 0:
			seconds := math.Ceil(who.Wait.Seconds())
			w.Header().Set("Retry-After", fmt.Sprintf("%.0f", seconds))
			manage.WriteProblem(w, r, http.StatusTooManyRequests, "too many wrong tokens")
		default:
			w.Header().Set("WWW-Authenticate", `Bearer realm="tgspool"`)
			manage.WriteProblem(w, r, http.StatusUnauthorized, noLogin)
		}
	})
}
