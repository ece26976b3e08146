#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
#	api.sh [QEMU]
#
# prints the newest plugin API version that a QEMU takes and this plugin knows.
# QEMU says it when it refuses a plugin that wants a version far too new.
set -e

qemu=${1:-qemu-system-aarch64}
newest_known=7

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
echo 'int qemu_plugin_version = 1000000;
int qemu_plugin_install(void) { return -1; }' > "$dir/probe.c"
${CC:-gcc} -shared -fPIC -o "$dir/probe.so" "$dir/probe.c"
# A comma in a value of QEMU's options is written as two.
probe=$(printf '%s' "$dir/probe.so" | sed 's/,/,,/g')
said=$($qemu -machine none -display none -plugin "file=$probe" 2>&1 </dev/null || true)
version=$(printf '%s\n' "$said" | sed -n 's/.*only up to version \([0-9][0-9]*\).*/\1/p')
if [ -z "$version" ]; then
	echo "api.sh: $qemu does not say which plugin API it has: $said" >&2
	exit 2
fi
if [ "$version" -gt $newest_known ]; then
	version=$newest_known
fi
echo "$version"
