# SPDX-License-Identifier: GPL-2.0
# A guest boots twice, and touches `few` or `many` pages: the difference is what the touches take.
# The host counts the stage-2 faults of the guest's RAM, which begins at 1 GiB; the last two digits
# of hsr are WnR and the fault's status, and 0x8 at its begin is a fetch.
mount -o bind /dev /data/dev
mount -t proc proc /data/proc
mount -t tmpfs tmpfs /data/tmp
cp /Image /few /many /data/tmp
echo never > /sys/kernel/mm/transparent_hugepage/enabled
cd /sys/kernel/tracing
echo 32768 > buffer_size_kb
echo 1 > events/kvm/kvm_guest_fault/enable
for boot in few many; do
  echo > trace
  chroot /data /usr/bin/qemu-system-aarch64 -accel kvm -cpu host -M virt,gic-version=3 \
  -nodefaults -display none -no-reboot -kernel /tmp/Image -m 256 -serial file:/tmp/log -initrd /tmp/$boot -append "COMMAND_LINE" \
    -device virtio-serial-device -chardev file,id=results,path=/tmp/results \
    -device virtserialport,chardev=results,name=results || tail -n 20 /data/tmp/log
  sed -n "s/^{.*page_faults/$boot &/p" /data/tmp/results
  sed -n "s/^overrun:/$boot lost/p" per_cpu/cpu*/stats
  awk -v boot=$boot 'match($0, /ipa 0x4[0-9a-f]*,/) && RLENGTH == 15 {
      page = substr($0, RSTART + 6, 5)
      match($0, /hsr 0x[0-9a-f]*/)
      kind = substr($0, RSTART + 6, 1) == "8" ? "fetch" : substr($0, RSTART + RLENGTH - 2, 2)
      if (kind == "fetch") next
      faults[(page in seen ? "again" : "first") " " kind]++
      seen[page] = 1
    }
    END { for (kind in faults) print boot, kind, faults[kind] }' trace
done
