package text_test

import (
	"testing"

	"github.com/tgspool/tgspool/internal/text"
)

func TestPlain(t *testing.T) {
	for _, tt := range []struct {
		mode     text.Mode
		in, want string
	}{
		{text.None, "<b>*x*</b>", "<b>*x*</b>"},
		{text.HTML, "<b>x</b> &lt;y&gt;", "x <y>"},
		{text.HTML, `<a href="http://h.invalid/?a&amp;b">Silence</a> <a href="http://h.invalid">http://h.invalid</a> <a href="tg://user?id=5">Ann</a>`, "Silence (http://h.invalid/?a&b) http://h.invalid Ann"},
		{text.MarkdownV2, "*bold _both_* \\*plain\\* [a](http://h.invalid)", "bold both *plain* a (http://h.invalid)"},
		{text.MarkdownV2, ">quoted\n>more||", "quoted\nmore"},
		{text.Markdown, "*b* snake\\_case", "b snake_case"},

		// What isn't valid.
		{text.HTML, "<b>load</b> < 10% <no value> &amp; &nbsp;", "load < 10% <no value> & &nbsp;"},
		{text.HTML, "one<br/>two<ul><li>three</li></ul><p>four</p>", "one\ntwo- three\nfour\n"},
		{text.HTML, `<b>x <a href='http://h.invalid'>y</a>`, "x y (http://h.invalid)"},
		{text.HTML, "x </b>y &#x41; &#xd800;", "x y A &#xd800;"},
		{text.MarkdownV2, "*Disk* is at 95.5% on `my_host`.", "Disk is at 95.5% on my_host."},
		{text.MarkdownV2, "snake_case_name and 3*4*5=60", "snake_case_name and 3*4*5=60"},
		{text.MarkdownV2, "**done!** __really__ \\- [a](http://h.invalid)", "done! really - a (http://h.invalid)"},
		{text.MarkdownV2, "*open ```sh\nls *.go\n``` 1.0", "*open ls *.go\n 1.0"},
		{text.MarkdownV2, "![👍](tg://emoji?id=5)! ||gone||!", "👍! gone!"},
		{text.Markdown, "*bold* and_open", "bold and_open"},
		{text.MarkdownV2, "*", "*"},
		{text.MarkdownV2, "\\", "\\"},
		{text.MarkdownV2, "```", "```"},
	} {
		if got := text.Plain(tt.mode, tt.in); got != tt.want {
			t.Errorf("%s %q:\n got %q\nwant %q", tt.mode, tt.in, got, tt.want)
		}
	}
}
