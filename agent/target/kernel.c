// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/kernel.h"

#include "base/user_file.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The oldest kernel with task storage in BTF tracepoints, attach cookies and bpf_loop(). */
#define FLOOR_MAJOR 6
#define FLOOR_MINOR 1

int kernel_below_floor(const char *release, const char *version, char *why, size_t sz)
{
	unsigned int major, minor;

	if (sscanf(release, "%u.%u", &major, &minor) != 2) {
		snprintf(why, sz, "this kernel calls itself '%.32s', which is no version", release);
		return -ENOTSUP;
	}
	if (major > FLOOR_MAJOR || (major == FLOOR_MAJOR && minor >= FLOOR_MINOR))
		return 0;
	/* Not only untested: it hangs when ring-buffer programs run in sched_switch. */
	if (strstr(version, "PREEMPT_RT") || strstr(version, "PREEMPT RT"))
		snprintf(why, sz,
			 "this real-time kernel is %.32s, which recording can bring to a halt: boot %d.%d or later",
			 release, FLOOR_MAJOR, FLOOR_MINOR);
	else
		snprintf(why, sz, "this kernel is %.32s: boot %d.%d or later", release, FLOOR_MAJOR, FLOOR_MINOR);
	return -ENOTSUP;
}

static int btf_unfit(const char *path, char *why, size_t sz)
{
	/* The first bytes of raw BTF, in this machine's byte order; an ELF file with a .BTF section is as good. */
	static const uint16_t btf_magic = 0xeb9f;
	unsigned char head[4];
	int fd = user_file_open(path), err;
	ssize_t got;

	if (fd < 0) {
		err = fd;
		snprintf(why, sz, "BTF file '%.128s' cannot be opened: %s", path, strerror(-err));
		return err;
	}
	got = read(fd, head, sizeof(head));
	err = got < 0 ? -errno : 0;
	close(fd);
	if (err) {
		snprintf(why, sz, "BTF file '%.128s' cannot be read: %s", path, strerror(-err));
		return err;
	}
	if (got == sizeof(head) && (!memcmp(head, &btf_magic, sizeof(btf_magic)) || !memcmp(head, "\177ELF", 4)))
		return 0;
	snprintf(why, sz, "'%.128s' holds no BTF: it takes a copy of " KERNEL_BTF " or a vmlinux with a .BTF section",
		 path);
	return -EINVAL;
}

int kernel_unfit(const char *btf_path, char *why, size_t sz)
{
	struct utsname uts;
	int err;

	uname(&uts);
	err = kernel_below_floor(uts.release, uts.version, why, sz);
	if (!err && btf_path)
		err = btf_unfit(btf_path, why, sz);
	if (err)
		return err;
	if (!access(KERNEL_BTF, R_OK))
		return 0;
	err = -errno;
	if (err == -EACCES)
		snprintf(why, sz, KERNEL_BTF " may not be read: run as root");
	else if (access("/sys/kernel", F_OK))
		snprintf(why, sz, KERNEL_BTF " cannot be seen: mount sysfs at /sys");
	else
		snprintf(why, sz,
			 "this kernel has no BTF (" KERNEL_BTF
			 "), without which its tracepoints cannot be attached%s: boot "
			 "one built with CONFIG_DEBUG_INFO_BTF=y, 6.1 or later",
			 btf_path ? ", whatever --btf says of its types" : "");
	return err;
}
