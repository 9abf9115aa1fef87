package cli

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tgspool/tgspool/internal/localapi"
	"github.com/tgspool/tgspool/internal/text"
)

// maxStdin bounds what is read from stdin.
const maxStdin = 8 << 20

// sendFlags are the flags of send.
type sendFlags struct {
	jobFlags
	silent, html, markdown, code bool
	thread, replyTo              int64
	photo, document              string
}

func (a *app) sendCommand() *cobra.Command {
	f := &sendFlags{}
	c := &cobra.Command{
		Use:   "send [flags] [TEXT...]",
		Short: "Queue a text or a file",
		Long: "Queue a text for a chat. Without TEXT, or with -, it is read from stdin. The job is on disk\n" +
			"before the command ends; it goes out when its turn comes and Telegram can be reached.\n" +
			"With --photo or --document the text is the file's caption, and may be left out. The file is\n" +
			"copied into the spool, at most max_upload of [store]; it may be removed afterwards.\n" +
			"A long text becomes several messages, cut at paragraphs, lines, sentences or words; they keep\n" +
			"their order, --key is for all of them, and when one is refused those behind it aren't sent.",
		Example: "  tgspool send Backup done\n" +
			"  df -h | tgspool send --code --silent\n" +
			"  tgspool send --chat -1001234567890 --key backup-2026-01-02 --ttl 6h Backup done\n" +
			"  tgspool send --at 07:30 --chat family Good morning\n" +
			"  tgspool send --photo door.jpg Somebody is at the door\n" +
			"  pg_dump home | gzip | tgspool send --document - --silent\n" +
			"  tgspool send --wait=30s --html '<b>Door</b> opened' || echo not delivered yet",
		RunE: func(c *cobra.Command, args []string) error {
			wait, err := f.waitFor(args)
			if err != nil {
				return err
			}
			f.split = true
			if f.photo != "" || f.document != "" {
				return a.sendFile(c.Context(), f, args, wait)
			}
			words, err := a.readText(args)
			if err != nil {
				return err
			}
			params, err := f.params("text", "entities", words)
			if err != nil {
				return err
			}
			body, err := f.body("sendMessage", params, &f.chat)
			if err != nil {
				return err
			}
			return a.enqueue(c.Context(), localapi.Request{Body: body}, wait)
		},
	}
	f.add(c, "the `chat`: id, @name or name of the settings (default the bot's default_chat)")
	flags := c.Flags()
	flags.BoolVar(&f.silent, "silent", false, "without a sound")
	flags.BoolVar(&f.html, "html", false, "the text is Telegram's HTML")
	flags.BoolVar(&f.markdown, "markdown", false, "the text is Telegram's MarkdownV2")
	flags.BoolVar(&f.code, "code", false, "show the text in a fixed-width block, as it is")
	flags.BoolVar(&f.plainFallback, "plain-fallback", false, "where Telegram can't parse the markup, send the text without it")
	flags.Int64Var(&f.thread, "thread", 0, "the forum topic's `id`")
	flags.Int64Var(&f.replyTo, "reply-to", 0, "the `id` of the message that this one answers")
	flags.StringVar(&f.photo, "photo", "", "the picture in this `file`; - is stdin")
	flags.StringVar(&f.document, "document", "", "this `file` as it is; - is stdin")
	return a.botFlag(a.jsonFlag(c))
}

// readText is the text of the arguments or of stdin.
func (a *app) readText(args []string) (string, error) {
	if len(args) > 0 && !slices.Equal(args, []string{"-"}) {
		return a.validText(strings.Join(args, " ")), nil
	}
	if len(args) == 0 && isTerminal(a.stdin) {
		return "", withHint(usagef("there is no text"), "tgspool send TEXT, or a program's output: df -h | tgspool send")
	}
	data, err := a.readStdin()
	return strings.TrimRight(a.validText(string(data)), "\r\n"), err
}

func (a *app) readStdin() ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(a.stdin, maxStdin+1))
	if err != nil {
		return nil, &exitError{code: exitIO, msg: "reading stdin: " + err.Error()}
	}
	if len(data) > maxStdin {
		return nil, dataf("stdin holds more than %s", size(maxStdin))
	}
	return data, nil
}

// validText replaces what is no UTF-8, which Telegram would refuse, and says so.
func (a *app) validText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	a.complain("hint", "the text is not UTF-8; the bytes that don't fit are replaced by \ufffd")
	return strings.ToValidUTF8(s, "\ufffd")
}

// params makes the parameters of a call whose text and entities have these names.
// Only a caption may be empty.
func (f *sendFlags) params(field, entities, body string) (json.RawMessage, error) {
	if marked := count(f.html, f.markdown, f.code); marked > 1 {
		return nil, usagef("--html, --markdown and --code exclude each other")
	}
	params := map[string]any{}
	switch empty := strings.TrimSpace(body) == ""; {
	case !empty:
		params[field] = body
	case field == "text":
		return nil, dataf("the text is empty")
	}
	switch {
	case params[field] == nil:
	case f.html:
		params["parse_mode"] = "HTML"
	case f.markdown:
		params["parse_mode"] = "MarkdownV2"
	case f.code:
		params[entities] = []map[string]any{{"type": "pre", "offset": 0, "length": text.Units(body)}}
	}
	if f.silent {
		params["disable_notification"] = true
	}
	if f.thread != 0 {
		params["message_thread_id"] = f.thread
	}
	if f.replyTo != 0 {
		params["reply_parameters"] = map[string]any{"message_id": f.replyTo}
	}
	return json.Marshal(params)
}

func count(flags ...bool) int {
	n := 0
	for _, set := range flags {
		if set {
			n++
		}
	}
	return n
}
