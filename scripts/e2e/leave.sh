# Sourced.
leaving() { :; }
