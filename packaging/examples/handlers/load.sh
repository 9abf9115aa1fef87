#!/bin/sh
# What is printed is sent to the chat; exit 0 says that the update is handled.
set -eu
read -r one five fifteen rest </proc/loadavg
echo "Load of $(uname -n): $one now, $five over 5 min, $fifteen over 15 min"
zone=/sys/class/thermal/thermal_zone0/temp
if [ -r "$zone" ]; then
	echo "Temperature: $(($(cat "$zone") / 1000)) °C"
fi
