# Sourced: an emulated arm64 machine, made without special rights over disks: root
# file system, kernel, a small initial ramdisk, an image; and programs of other
# processors run by the kernel through qemu.

# binfmt_on lets the kernel start programs for ARM: chroots and handlers do.
# The names are ours, so that what the machine has stays as it is.
binfmt_on() {
	[ -e /proc/sys/fs/binfmt_misc/register ] || mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
	binfmt_one tgspool-arm64 '\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00' \
		'\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff' qemu-aarch64-static
	binfmt_one tgspool-armhf '\x7fELF\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x28\x00' \
		'\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff' qemu-arm-static
}

# binfmt_one NAME MAGIC MASK PROGRAM
binfmt_one() {
	binfmt_drop "$1"
	printf ':%s:M::%s:%s:%s:FPC' "$1" "$2" "$3" "$(command -v "$4")" >/proc/sys/fs/binfmt_misc/register
}

binfmt_drop() {
	[ ! -e "/proc/sys/fs/binfmt_misc/$1" ] || echo -1 >"/proc/sys/fs/binfmt_misc/$1"
}

binfmt_off() {
	binfmt_drop tgspool-arm64
	binfmt_drop tgspool-armhf
}

# arm_parts makes, once, $PARTS/{root,vmlinuz,initrd}.
arm_parts() {
	PARTS=$E2E_CACHE/arm64
	[ ! -e "$PARTS/initrd" ] || return 0
	local new=$PARTS.new from version
	from=$(mirror)
	rm -rf "$new" "$PARTS"
	mkdir -p "$new"
	# The kernel's package is only unpacked; it would want to make a ramdisk of its own.
	mmdebstrap --quiet --variant=extract --architectures=arm64 --include=linux-image-cloud-arm64,busybox-static \
		bookworm "$new/kernel" ${from:+"$from"}
	mmdebstrap --quiet --variant=minbase --architectures=arm64 --include=systemd,systemd-sysv,dbus,udev,kmod \
		bookworm "$new/root" ${from:+"$from"}
	rm -rf "$new/root"/var/lib/apt/lists/* "$new/root"/etc/apt/sources.list
	: >"$new/root/etc/machine-id"
	version=$(ls "$new/kernel/lib/modules")
	cp "$new/kernel/boot/vmlinuz-$version" "$new/vmlinuz"
	arm_initrd "$new" "$version"
	rm -rf "$new/kernel"
	mv "$new" "$PARTS"
}

# arm_initrd DIR VERSION makes a ramdisk that finds the disk and nothing else.
arm_initrd() {
	local dir=$1/initrd.d modules module
	mkdir -p "$1/root/lib/modules"
	cp -a "$1/kernel/lib/modules/$2" "$1/root/lib/modules/"
	depmod -b "$1/root" "$2"
	mkdir -p "$dir"/{bin,dev,proc,sys,root,m}
	cp "$1/kernel/bin/busybox" "$dir/bin/"
	modules=$(for module in virtio_pci virtio_blk ext4; do
		modprobe -d "$1/root" -S "$2" --show-depends $module | awk '$1 == "insmod" { print $2 }'
	done | awk '!seen[$0]++')
	{
		echo '#!/bin/busybox sh'
		echo 'b=/bin/busybox; $b mount -t proc p /proc; $b mount -t sysfs s /sys; $b mount -t devtmpfs d /dev'
		for module in $modules; do
			cp "$module" "$dir/m/"
			echo "\$b insmod /m/$(basename "$module")"
		done
		echo 'n=0; while [ ! -b /dev/vda ] && [ $n -lt 100 ]; do $b sleep 0.1; n=$((n+1)); done'
		echo '$b mount -t ext4 /dev/vda /root; $b umount /proc /sys; $b mount --move /dev /root/dev'
		echo 'exec $b switch_root /root /sbin/init'
	} >"$dir/init"
	chmod 755 "$dir/init"
	(cd "$dir" && find . | cpio -o -H newc --quiet | gzip -1) >"$1/initrd"
	rm -rf "$dir"
}

# arm_image DEB SCRIPT makes $WORK/arm64.img, a disk that installs the package by
# running the script once it is up, with its output on the console.
arm_image() {
	local root=$WORK/arm64
	cp -a --reflink=auto "$PARTS/root" "$root"
	install -m 644 "$1" "$root/root/tgspool.deb"
	install -m 755 "$2" "$root/usr/local/sbin/trial"
	echo "/dev/vda / ext4 rw 0 1" >"$root/etc/fstab"
	echo tgspool-arm64 >"$root/etc/hostname"
	printf '127.0.0.1 localhost tgspool-arm64\n' >"$root/etc/hosts"
	printf '%s\n' '[Unit]' 'After=systemd-user-sessions.service' '[Service]' 'Type=oneshot' 'ExecStart=/usr/local/sbin/trial' \
		'StandardOutput=journal+console' 'StandardError=journal+console' 'TimeoutStartSec=300' \
		'ExecStopPost=/usr/bin/systemctl --no-block poweroff' >"$root/etc/systemd/system/trial.service"
	mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
	ln -s ../trial.service "$root/etc/systemd/system/multi-user.target.wants/"
	mke2fs -q -t ext4 -d "$root" "$WORK/arm64.img" 2G >/dev/null
	rm -rf "$root"
}

# arm_boot runs the machine until it turns itself off; its console is $WORK/console.
arm_boot() {
	timeout 420 qemu-system-aarch64 -M virt -cpu cortex-a53 -accel tcg,thread=multi -smp 2 -m 512 \
		-display none -no-reboot -nic none -serial "file:$WORK/console" \
		-kernel "$PARTS/vmlinuz" -initrd "$PARTS/initrd" -append "root=/dev/vda rw console=ttyAMA0 quiet panic=-1" \
		-drive "file=$WORK/arm64.img,if=none,id=d,format=raw,cache=unsafe" -device virtio-blk-pci,drive=d \
		-device virtio-rng-pci </dev/null
}
