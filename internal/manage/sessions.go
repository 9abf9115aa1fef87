package manage

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tgspool/tgspool/internal/spool"
)

// sessionKey reads whose session is meant: an id, @name or name of the settings,
// or two of them with a colon between.
func (a *api) sessionKey(bot *spool.Bot, s string) (spool.SessionKey, error) {
	if k, err := spool.ParseSessionKey(s); err == nil {
		return k, nil
	}
	chat, user, both := strings.Cut(s, ":")
	k := spool.SessionKey{}
	var err error
	if k.Chat, err = a.chatID(bot, chat); err == nil && both {
		k.User, err = a.chatID(bot, user)
	}
	if err == nil && both && k.User <= 0 {
		err = problemf(http.StatusUnprocessableEntity, "%q is no user", user)
	}
	return k, err
}

// chatID is resolveChat for what must have an id.
func (a *api) chatID(bot *spool.Bot, s string) (int64, error) {
	if s == "" {
		return 0, problemf(http.StatusUnprocessableEntity, "the key of a session is <chat> or <chat>:<user>")
	}
	name, err := a.resolveChat(bot.Name(), s)
	if err != nil {
		return 0, err
	}
	if id, err := strconv.ParseInt(name, 10, 64); err == nil && id != 0 {
		return id, nil
	}
	chat, err := bot.Chat(name)
	switch {
	case err != nil:
		return 0, err
	case chat.ChatID == nil:
		return 0, problemf(http.StatusUnprocessableEntity, "the id of %s isn't known yet", s)
	}
	return *chat.ChatID, nil
}

// session finds the bot and the key of the path.
func (a *api) session(r *http.Request) (*spool.Bot, spool.SessionKey, error) {
	bot, err := a.bot(r)
	if err != nil {
		return nil, spool.SessionKey{}, err
	}
	if _, err := readQuery(r); err != nil {
		return nil, spool.SessionKey{}, err
	}
	k, err := a.sessionKey(bot, r.PathValue("key"))
	return bot, k, err
}

func etag(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

// listSessions lists a bot's sessions in the order of their chats' ids.
func (a *api) listSessions(r *http.Request) (int, any, error) {
	bot, err := a.bot(r)
	if err != nil {
		return 0, nil, err
	}
	q, err := readQuery(r, "limit", "after")
	if err != nil {
		return 0, nil, err
	}
	var after spool.SessionKey
	if s, ok := q["after"]; ok {
		delete(q, "after")
		if after, err = spool.ParseSessionKey(s); err != nil {
			return 0, nil, problemf(http.StatusBadRequest, "after: %s", err)
		}
	}
	limit, _, err := q.page()
	if err != nil {
		return 0, nil, err
	}
	got, err := bot.Sessions(after, limit)
	if err != nil {
		return 0, nil, err
	}
	out := page[spool.Session]{Items: got.Items}
	if got.Next != "" {
		out.Next = &got.Next
	}
	return http.StatusOK, out, nil
}

// showSession answers with a session; 304 where the caller has that version.
func (a *api) showSession(r *http.Request) (int, any, error) {
	bot, k, err := a.session(r)
	if err != nil {
		return 0, nil, err
	}
	s, err := bot.Session(k)
	if err != nil {
		return 0, nil, err
	}
	status := http.StatusOK
	if tags := tagsOf(r, "If-None-Match"); slices.Contains(tags, "*") || slices.Contains(tags, etag(s.Version)) {
		status = http.StatusNotModified
	}
	return status, tagged{etag(s.Version), s}, nil
}

// putSession stores a session; the body is its data.
func (a *api) putSession(r *http.Request) (int, any, error) {
	bot, k, err := a.session(r)
	if err != nil {
		return 0, nil, err
	}
	version, err := wantedVersion(r)
	if err != nil {
		return 0, nil, err
	}
	body, many, err := readBody(r)
	if err != nil {
		return 0, nil, err
	}
	if many {
		return 0, nil, problemf(http.StatusUnsupportedMediaType, "a session is one JSON object, sent as %s", jsonType)
	}
	if _, err := readObject(body); err != nil {
		return 0, nil, err
	}
	ctx, cancel := change(r.Context())
	defer cancel()
	s, made, err := bot.SetSession(ctx, k, body, version)
	if err != nil {
		return 0, nil, err
	}
	status := http.StatusOK
	if made {
		status = http.StatusCreated
	}
	return status, tagged{etag(s.Version), s}, nil
}

// deleteSession ends a session.
func (a *api) deleteSession(r *http.Request) (int, any, error) {
	bot, k, err := a.session(r)
	if err != nil {
		return 0, nil, err
	}
	version, err := wantedVersion(r)
	if err != nil {
		return 0, nil, err
	}
	if err := noBody(r); err != nil {
		return 0, nil, err
	}
	ctx, cancel := change(r.Context())
	defer cancel()
	return http.StatusNoContent, nil, bot.DeleteSession(ctx, k, version)
}

// wantedVersion is the version that a change is to be made from, by the request's
// conditions.
func wantedVersion(r *http.Request) (int64, error) {
	match, none := tagsOf(r, "If-Match"), tagsOf(r, "If-None-Match")
	switch {
	case len(match) > 0 && len(none) > 0:
		return 0, problemf(http.StatusBadRequest, "If-Match and If-None-Match exclude each other")
	case len(none) == 1 && none[0] == "*":
		return 0, nil
	case len(none) > 0:
		return 0, problemf(http.StatusBadRequest, "If-None-Match can only be * here: for a session that isn't there yet")
	case len(match) == 0:
		return spool.AnyVersion, nil
	case len(match) > 1:
		return 0, problemf(http.StatusBadRequest, "If-Match names more than one version")
	case match[0] == "*":
		return spool.SomeVersion, nil
	}
	version, err := readETag(match[0])
	if err != nil {
		return 0, problemf(http.StatusBadRequest, `If-Match: %s; send the ETag of the session as it was read, like "3"`, err)
	}
	return version, nil
}

// readETag reads a version, with its quotes or, as shells like it, without.
func readETag(tag string) (int64, error) {
	inner, quoted := strings.CutPrefix(tag, `"`)
	if quoted {
		inner, quoted = strings.CutSuffix(inner, `"`)
		if !quoted {
			return 0, fmt.Errorf("%q has no second quote", tag)
		}
	}
	version, err := strconv.ParseInt(inner, 10, 64)
	if err != nil || version < 1 {
		return 0, errors.New("it is no ETag of a session")
	}
	return version, nil
}

// tagsOf are the entity tags of a header.
func tagsOf(r *http.Request, header string) (tags []string) {
	for _, line := range r.Header.Values(header) {
		for tag := range strings.SplitSeq(line, ",") {
			if tag = strings.TrimSpace(tag); tag != "" {
				tags = append(tags, tag)
			}
		}
	}
	return tags
}
