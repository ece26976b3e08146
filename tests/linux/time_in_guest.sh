# SPDX-License-Identifier: GPL-2.0
# Runs tests/linux/time_in_guest.py twice, the second time to go on.
mount -o bind /dev /data/dev
mount -o bind /sys /data/sys
mount -t proc proc /data/proc
mount -t tmpfs tmpfs /data/tmp
mkdir /data/tmp/code
tar -xf /code.tar -C /data/tmp/code
cp -r /parts /data/tmp/parts
export HOME=/tmp PATH=/usr/bin:/usr/sbin:/bin PYTHONPATH=/tmp/code
run() {
  chroot /data /usr/bin/python3 -B -m tests.linux.time_in_guest $1 2>&1 || echo "status $?"
}
run 1
run 2
echo; echo RESULTS; cat /data/tmp/out/results.jsonl
