// SPDX-License-Identifier: GPL-2.0-or-later
/* What people call the program: Debian's redis-server, say, is a link to redis-check-rdb. */
#include "target/proc_file.h"
#include "target/target.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where the kernel left the path given to execve(); 0 when unknown. */
static uint64_t execfn_addr(pid_t pid)
{
	Elf64_auxv_t auxv[64];
	ssize_t len = proc_read((char *)auxv, sizeof(auxv), "/proc/%d/auxv", pid);

	for (ssize_t i = 0; i < len / (ssize_t)sizeof(auxv[0]); i++)
		if (auxv[i].a_type == AT_EXECFN)
			return auxv[i].a_un.a_val;
	return 0;
}

/* The target may have overwritten it by now: for the caller to verify.  False when it cannot be read. */
static bool execfn_read(pid_t pid, char *buf, size_t sz)
{
	uint64_t addr = execfn_addr(pid);
	ssize_t len;
	int fd;

	if (!addr || addr > INT64_MAX)
		return false;
	fd = proc_mem_open(pid);
	if (fd < 0)
		return false;
	/* Its page may be the stack's last: what can be read is what there is. */
	len = pread(fd, buf, sz - 1, addr);
	close(fd);
	buf[len > 0 ? len : 0] = '\0';
	return len > 0 && buf[0];
}

/* Does this path, as the target sees it, lead to what it runs?  For a script it does not. */
static bool leads_to_exe(pid_t pid, const char *path)
{
	char exe_link[64], seen[64 + PATH_MAX];
	struct stat exe, named;

	snprintf(exe_link, sizeof(exe_link), "/proc/%d/exe", pid);
	snprintf(seen, sizeof(seen), "/proc/%d/%s%s", pid, path[0] == '/' ? "root" : "cwd/", path);
	if (stat(exe_link, &exe))
		return false;
	/* A link in there that begins at the root leads into our own tree, which most often has the same. */
	return !stat(seen, &named) && named.st_ino == exe.st_ino && named.st_dev == exe.st_dev;
}

int target_program_name(pid_t pid, char *buf, size_t sz)
{
	char exe_link[64], path[PATH_MAX];
	struct target_mapping exe = {.path = path};
	ssize_t len;

	if (!execfn_read(pid, path, sizeof(path)) || !leads_to_exe(pid, path)) {
		snprintf(exe_link, sizeof(exe_link), "/proc/%d/exe", pid);
		len = readlink(exe_link, path, sizeof(path) - 1);
		if (len < 0)
			return errno == ENOENT ? -ESRCH : -errno;
		path[len] = '\0';
	} else if (strrchr(path, '/')) {
		memmove(path, strrchr(path, '/'), strlen(strrchr(path, '/')) + 1);
	}
	target_mapping_basename(&exe, buf, sz);
	return 0;
}
