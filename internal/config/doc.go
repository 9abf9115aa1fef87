// Package config reads the settings: one main file and the *.toml files of the
// conf.d folder beside it, or, where there are none, the environment.
//
// Load gives a Config in which every default is filled in, every name of a chat
// is resolved to its id, and every value is known to be good; or it gives
// Errors, all that is wrong at once, each with file, line, column, what is
// wrong and what was probably meant. Nothing is guessed: an unknown key, a key
// set twice, a number without a unit are errors, because a setting that is
// silently ignored shows only when it is needed.
//
// A file is parsed into a tree whose nodes know their places (tree.go), the
// trees of all files are merged (merge.go), and the merged tree is decoded into
// the structs along their tags (decode.go, value.go, form.go). What spans
// several keys is checked last (verify.go). The tags are the one list of keys:
// Keys, Example, TOML and Diff are made from them too. What is settled but not
// built yet is listed in notbuilt.go: it is told, and where it would do harm
// refused.
//
// No error, and nothing else here, ever shows a token, a secret, or the value
// of a key that may hold one.
package config
