package cli

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

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
		Short: "Queue a text",
		Long: "Queue a text for a chat. Without TEXT, or with -, it is read from stdin. The job is on disk\n" +
			"before the command ends; it goes out when its turn comes and Telegram can be reached.\n" +
			"A long text becomes several messages, cut at paragraphs, lines, sentences or words; they keep\n" +
			"their order, --key is for all of them, and when one is refused those behind it aren't sent.",
		Example: "  tgspool send Backup done\n" +
			"  df -h | tgspool send --code --silent\n" +
			"  tgspool send --chat -1001234567890 --key backup-2026-01-02 --ttl 6h Backup done\n" +
			"  tgspool send --at 07:30 --chat family Good morning\n" +
			"  tgspool send --wait=30s --html '<b>Door</b> opened' || echo not delivered yet",
		RunE: func(c *cobra.Command, args []string) error {
			wait, err := f.waitFor(args)
			if err != nil {
				return err
			}
			words, err := a.readText(args)
			if err != nil {
				return err
			}
			params, err := f.params(words)
			if err != nil {
				return err
			}
			f.split = true
			body, err := f.body("sendMessage", params, &f.chat)
			if err != nil {
				return err
			}
			return a.enqueue(c.Context(), body, wait)
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
	flags.StringVar(&f.photo, "photo", "", "a picture's `file` (not supported yet)")
	flags.StringVar(&f.document, "document", "", "a `file` of any kind (not supported yet)")
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

// params makes the parameters of sendMessage.
func (f *sendFlags) params(body string) (json.RawMessage, error) {
	if f.photo != "" || f.document != "" {
		return nil, usagef("files can't be sent yet; only texts")
	}
	if marked := count(f.html, f.markdown, f.code); marked > 1 {
		return nil, usagef("--html, --markdown and --code exclude each other")
	}
	if strings.TrimSpace(body) == "" {
		return nil, dataf("the text is empty")
	}
	params := map[string]any{"text": body}
	switch {
	case f.html:
		params["parse_mode"] = "HTML"
	case f.markdown:
		params["parse_mode"] = "MarkdownV2"
	case f.code:
		params["entities"] = []map[string]any{{"type": "pre", "offset": 0, "length": text.Units(body)}}
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
