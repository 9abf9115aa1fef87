package botapi

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
)

const (
	testSecret = "AAF_zQ-invented-Secret-0123456789xyz" //nolint:gosec // made up
	testToken  = "7123456789:" + testSecret
)

func mustToken(t testing.TB) Token {
	t.Helper()
	token, err := ParseToken(testToken)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestParseTokenTakesWhatPeoplePaste(t *testing.T) {
	for _, s := range []string{
		testToken,
		"  " + testToken + "\r\n",
		"\ufeff" + testToken,
		"\"" + testToken + "\"\n",
		"'" + testToken + "'",
		"\ufeff \" " + testToken + " \" \r\n",
	} {
		token, err := ParseToken(s)
		if err != nil {
			t.Errorf("%q: %v", s, err)
			continue
		}
		if token.BotID() != 7123456789 || !token.Equal(testToken) || token.Reveal() != testToken || token.IsZero() {
			t.Errorf("%q gave bot %d", s, token.BotID())
		}
	}
	if token, err := ParseToken("18014398509481984:" + testSecret); err != nil || token.BotID() != 1<<54 {
		t.Errorf("largest id: %v", err)
	}
}

func TestParseTokenRefusesWithoutEcho(t *testing.T) {
	for name, s := range map[string]string{
		"empty":        " \n",
		"no colon":     testSecret,
		"no id":        ":" + testSecret,
		"no secret":    "7123456789:",
		"leading zero": "07:" + testSecret,
		"zero":         "0:" + testSecret,
		"sign":         "+7:" + testSecret,
		"negative":     "-7:" + testSecret,
		"id too big":   "18014398509481985:" + testSecret,
		"overflow":     "99999999999999999999:" + testSecret,
		"words":        "bot7:" + testSecret,
		"slash":        "7:" + testSecret + "/x",
		"query":        "7:" + testSecret + "?x",
		"percent":      "7:" + testSecret + "%2F",
		"blank inside": "7:" + testSecret + " x",
		"line inside":  "7:" + testSecret + "\nx",
		"not ASCII":    "7:" + testSecret + "é",
		"too long":     "7:" + strings.Repeat(testSecret, 3),
	} {
		token, err := ParseToken(s)
		if err == nil {
			t.Errorf("%s was taken", name)
			continue
		}
		if !token.IsZero() || strings.Contains(err.Error(), testSecret) {
			t.Errorf("%s: token %v, error %v", name, token, err)
		}
	}
}

func TestTokenCannotBePrinted(t *testing.T) {
	type holder struct {
		Shown  Token
		hidden Token
		inside *Token
	}
	token := mustToken(t)
	h := holder{Shown: token, hidden: token, inside: &token}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%c", "%U", "%e"} {
		fmt.Fprintf(&out, verb+" "+verb+" "+verb+" ", token, &token, h)
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("started", slog.Any("method", token), slog.Any("state", h))
	}
	encoded, err := json.Marshal(map[string]any{"token": token, "holder": h, token.String(): 1})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(encoded)
	hexed := fmt.Sprintf("%x", testSecret)
	for _, secret := range []string{testSecret, hexed, strings.ToUpper(hexed)} {
		if strings.Contains(out.String(), secret) {
			t.Errorf("the secret stands in the output as %q", secret)
		}
	}
	if want := "7123456789:[redacted]"; token.String() != want || string(encoded) == "" || fmt.Sprintf("%#v", token) != want {
		t.Errorf("token prints as %v", token)
	}
	if (Token{}).String() != "" || (Token{}).Reveal() != "" || (Token{}).BotID() != 0 {
		t.Error("the zero token isn't empty")
	}
}

func TestTokenEqual(t *testing.T) {
	token := mustToken(t)
	for _, s := range []string{"", testSecret, testToken + "x", testToken[:len(testToken)-1], " " + testToken} {
		if token.Equal(s) {
			t.Errorf("equals %q", s)
		}
	}
	if (Token{}).Equal("") {
		t.Error("the zero token equals the empty text")
	}
}

func TestRedact(t *testing.T) {
	token := mustToken(t)
	for _, s := range []string{
		"Post https://api.telegram.org/bot" + testToken + "/getMe: EOF",
		"https://api.telegram.org/bot" + url.QueryEscape(testToken) + "/getMe",
		"https://api.telegram.org/bot" + strings.ReplaceAll(testToken, ":", "%3a") + "/getMe",
		"u=" + url.QueryEscape(url.QueryEscape(testToken)),
		"only " + testSecret + " here, and " + testSecret,
		testToken + testToken,
	} {
		got := token.Redact(s)
		if strings.Contains(got, testSecret) || !strings.Contains(got, redacted) {
			t.Errorf("%q became %q", s, got)
		}
	}
	if s := "nothing to hide, 7123456789"; token.Redact(s) != s || (Token{}).Redact(s) != s {
		t.Error("a harmless text was changed")
	}
	short, err := ParseToken("12:abc")
	if err != nil {
		t.Fatal(err)
	}
	if got := short.Redact("bot12:abc of abc"); got != "bot12:[redacted] of abc" {
		t.Errorf("short secret: %q", got)
	}
}
