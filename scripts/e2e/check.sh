# Sourced: steps, assertions and bounded waits. Bounds are for a machine that does
# other things as well; what waits goes on as soon as it can.

# step NAME FUNCTION runs one step. What fails in it ends everything, with what
# the machine has to say about it.
step() {
	local start=$EPOCHREALTIME
	STEP=$1
	"${@:2}"
	printf '   ok %6s s  %s%s\n' "$(since "$start")" "$STEP" "${NOTE:+: $NOTE}"
	STEP='' NOTE=''
}

# note TEXT is told behind the step's name: a figure that was measured.
note() { NOTE=${NOTE:+$NOTE, }$1; }

# since TIME is the seconds that have passed, with hundredths.
since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }'; }

# mirror prints where this machine gets its Debian packages from, or nothing.
mirror() {
	cat /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null |
		awk '/^URIs:/ { print $2; exit } /^deb / { for (i = 2; i <= NF; i++) if ($i ~ /:\/\//) { print $i; exit } }' || true
}

fail() {
	printf 'e2e: %s: %s\n' "${STEP:-outside of a step}" "$*" >&2
	exit 1
}

# strays: a command that nobody checks has failed; says which.
strays() {
	[ -n "${WHERE:-}" ] || WHERE="'$BASH_COMMAND' in ${FUNCNAME[1]:-main} (${BASH_SOURCE[1]##*/}:${BASH_LINENO[0]})"
}
trap strays ERR

# equals WHAT WANT GOT
equals() { [ "$2" = "$3" ] || fail "$1: want '$2', got '$3'"; }

# holds WHAT PART TEXT
holds() { [[ $3 == *"$2"* ]] || fail "$1: no '$2' in: $3"; }

# lacks WHAT PART TEXT
lacks() { [[ $3 != *"$2"* ]] || fail "$1: '$2' in: $3"; }

# at_most WHAT LIMIT FIGURE
at_most() { awk -v l="$2" -v f="$3" 'BEGIN { exit !(f <= l) }' || fail "$1: $3 is over $2"; }

# refuses COMMAND... must fail; its output is printed.
refuses() {
	local out
	if out=$("$@" 2>&1); then
		fail "must fail but didn't: $*: $out"
	fi
	printf '%s' "$out"
}

# eventually SECONDS WHAT COMMAND... tries until the command succeeds.
eventually() {
	local limit=$((SECONDS + $1)) what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $limit ] || fail "$what: not within the time: $*: $("$@" 2>&1 | tail -5)"
		sleep 0.1
	done
}
