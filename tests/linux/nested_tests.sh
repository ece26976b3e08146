# SPDX-License-Identifier: GPL-2.0
# A guest of KVM that runs its KUnit tests: it has no programs, finds no init and panics.
mount -o bind /dev /data/dev
mount -t proc proc /data/proc
mount -t tmpfs tmpfs /data/tmp
cp /Image /data/tmp/Image
chroot /data /usr/bin/qemu-system-aarch64 -accel kvm -cpu host -M virt,gic-version=3 \
  -nodefaults -display none -no-reboot -kernel /tmp/Image -m 512 -serial stdio -append "console=ttyAMA0 kunit.enable=1 panic=-1"
