// SPDX-License-Identifier: GPL-2.0
/* The only process of a machine: runs /test with its output on the console. */
#include <stdio.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	int status = -1;

	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	if (mount("proc", "/proc", "proc", 0, NULL) || mount("sysfs", "/sys", "sysfs", 0, NULL))
		perror("mount");
	if (!fork()) {
		execl("/test", "/test", NULL);
		_exit(127);
	}
	wait(&status);
	printf("\nthe test ended with status %#x\n", status);
	fflush(stdout);
	reboot(RB_AUTOBOOT);
	return 1;
}
