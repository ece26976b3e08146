// SPDX-License-Identifier: GPL-2.0
/* kexec KERNEL INITRD CMDLINE: boot the kernel in a file, with the command line in a file. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/reboot.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char command_line[1024] = "";
	int kernel, initrd, file;

	if (argc != 4) {
		fputs("usage: kexec KERNEL INITRD CMDLINE\n", stderr);
		return 2;
	}
	kernel = open(argv[1], O_RDONLY);
	initrd = open(argv[2], O_RDONLY);
	file = open(argv[3], O_RDONLY);
	if (kernel < 0 || initrd < 0 ||
	    read(file, command_line, sizeof(command_line) - 1) <= 0) {
		perror("kexec: files");
		return 1;
	}
	/* The length counts the byte that ends it. */
	if (syscall(SYS_kexec_file_load, kernel, initrd,
		    strlen(command_line) + 1, command_line, 0)) {
		perror("kexec: kexec_file_load");
		return 1;
	}
	syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2,
		LINUX_REBOOT_CMD_KEXEC, NULL);
	perror("kexec: reboot");
	return 1;
}
