package daemon

import (
	"github.com/tgspool/tgspool/internal/config"
	"github.com/tgspool/tgspool/internal/handler"
	"github.com/tgspool/tgspool/internal/sender"
	"github.com/tgspool/tgspool/internal/spool"
)

// The rooms know nothing of the settings' form; here one becomes the other.

func limitsOf(s config.Sender) spool.Limits {
	return spool.Limits{
		ChatGap: s.ChatGap, ChatBurst: s.ChatBurst, GroupPerMinute: s.GroupPerMinute,
		MaxAttempts: s.MaxAttempts, OnUncertain: spool.Policy(s.OnUncertain), UncertainFor: s.UncertainFor, TTL: s.TTL,
	}
}

func senderOptions(s config.Sender, dir string) sender.Options {
	return sender.Options{FloodScope: sender.FloodScope(s.FloodScope), RequestTimeout: s.RequestTimeout, LateNote: s.LateNote, Dir: dir}
}

// Routes are the handlers of the settings in the form of their room.
func Routes(list []config.Handler) []handler.RouteConfig {
	routes := make([]handler.RouteConfig, 0, len(list))
	for _, h := range list {
		routes = append(routes, handler.RouteConfig{
			Name: h.Name,
			Match: handler.Match{
				Commands: h.Match.Command, Kinds: h.Match.Kind, Chats: h.Match.Chat, From: h.Match.From, Text: h.Match.Text,
			},
			Exec: h.Exec, Webhook: h.Webhook, Pull: h.Pull,
			Reply:      handler.Reply(h.Reply),
			AllowFrom:  handler.Allow{All: h.AllowFrom.All, IDs: h.AllowFrom.IDs},
			AllowChats: handler.Allow{All: h.AllowChats.All, IDs: h.AllowChats.IDs},
			Timeout:    h.Timeout, Attempts: h.Attempts, Parallel: h.Parallel, Once: h.Once, MaxAge: h.MaxAge,
			PerUser: h.Session == "chat+user", Collapse: h.Collapse, AnswerCallbacks: h.AnswerCallbacks, Typing: h.Typing,
			Ack: h.Ack, Late: h.Late, OnError: h.OnError, Denied: h.Denied,
			SecretFile: h.SecretFile, MaxConnections: h.MaxConnections,
		})
	}
	return routes
}
