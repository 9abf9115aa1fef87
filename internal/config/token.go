package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// TokenError says why there is no token or secret, and what to do about it. It
// is an ErrNoToken, and never holds what was read.
type TokenError struct {
	// Bot is the bot's name, "" for a secret file.
	Bot string
	// Source is where the token was looked for.
	Source string
	// Why says what is wrong there, Hint what to do.
	Why  string
	Hint string
	// Err is the error of the file system, or nil.
	Err error
}

// Error returns two lines: what is wrong, and what to do.
func (e *TokenError) Error() string {
	s := e.Source + ": " + e.Why
	if e.Bot != "" {
		s = "bot " + e.Bot + ": no usable token: " + s
	}
	if e.Hint != "" {
		s += "\n" + e.Hint
	}
	return s
}

// Is makes every TokenError an ErrNoToken.
func (e *TokenError) Is(target error) bool { return target == ErrNoToken }

// Unwrap returns the error of the file system.
func (e *TokenError) Unwrap() error { return e.Err }

// ReadToken returns the bot's token and where it was found: in token_file, else
// in the systemd credential bot_NAME.token (or bot_NAME), else, for the bot
// "default", in TELEGRAM_BOT_TOKEN. A place that is there but unusable is an
// error; the next one is not tried, since which token is in use must not depend
// on a file's rights. What surrounds a token when it is pasted (blanks, line
// ends, quotes, a byte order mark) is taken off; whether the rest is a token is
// not judged here.
func ReadToken(bot Bot, env func(string) string) (token, source string, err error) {
	hint := "write it with: tgspool token set " + bot.Name
	if bot.TokenFile != "" {
		token, err = readFile(bot.TokenFile)
		return token, bot.TokenFile, bot.tokenError(bot.TokenFile, hint, err)
	}
	if dir := env("CREDENTIALS_DIRECTORY"); dir != "" {
		for _, name := range []string{"bot_" + bot.Name + ".token", "bot_" + bot.Name} {
			token, err = readFile(filepath.Join(dir, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			source = "credential " + name
			return token, source, bot.tokenError(source, hint, err)
		}
	}
	const variable = "TELEGRAM_BOT_TOKEN"
	if raw := env(variable); bot.Name == envBotName && raw != "" {
		token, err = clean(raw)
		return token, variable, bot.tokenError(variable, "set it to the token that @BotFather gave you", err)
	}
	source = "credential bot_" + bot.Name + ".token"
	missing := &TokenError{Bot: bot.Name, Source: source, Why: "not there", Hint: hint + ", or name its file with token_file"}
	return "", source, missing
}

// tokenError completes an error of reading with what the user needs.
func (b Bot) tokenError(source, hint string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrPermission) {
		hint = "give the user that runs tgspool the right to read it"
	}
	return &TokenError{Bot: b.Name, Source: source, Why: err.Error(), Hint: hint, Err: err}
}

// ReadSecret returns the content of a secret_file or of admin_token_file,
// cleaned in the way of ReadToken.
func ReadSecret(path string) (string, error) {
	secret, err := readFile(path)
	if err != nil {
		return "", &TokenError{Source: path, Why: err.Error(), Hint: "the file must hold the secret alone", Err: err}
	}
	return secret, nil
}

// maxSecretSize bounds the reading of a secret; no token comes near it.
const maxSecretSize = 4096

// readFile reads a file that holds one token or secret.
func readFile(path string) (string, error) {
	data, err := readUpTo(path, maxSecretSize+1)
	if err != nil {
		return "", err
	}
	if len(data) > maxSecretSize {
		return "", fmt.Errorf("larger than %d bytes", maxSecretSize)
	}
	return clean(string(data))
}

// clean takes off what surrounds a pasted token.
func clean(s string) (string, error) {
	if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return "", errors.New("not UTF-8 text")
	}
	s = strings.TrimFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.In(r, unicode.Cf) || strings.ContainsRune("\"'`“”„‘’«»", r)
	})
	switch {
	case s == "":
		return "", errors.New("empty")
	case strings.ContainsFunc(s, unicode.IsSpace):
		return "", errors.New("holds more than the token")
	}
	return s, nil
}
