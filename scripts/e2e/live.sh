# Sourced.
living() { :; }
