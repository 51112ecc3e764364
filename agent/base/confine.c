// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/confine.h"

#include "base/capabilities.h"
#include "base/log.h"
#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define READABLE_MAX     256
#define ARRAY_CNT(array) (sizeof(array) / sizeof((array)[0]))

/* The number of CPUs; the terminal and the null device are open or opened by name. */
static const char *const system_files[] = {"/sys/devices/system/cpu", "/dev/null", "/etc/localtime",
					   "/usr/share/zoneinfo"};
/* Names of hosts, and certificates. */
static const char *const network_files[] = {
	"/etc/resolv.conf", "/etc/hosts",           "/etc/nsswitch.conf",   "/etc/gai.conf", "/etc/host.conf",
	"/etc/services",    "/etc/protocols",       "/etc/ld.so.cache",     "/etc/ssl",      "/etc/pki",
	"/etc/gnutls",      "/etc/ca-certificates", "/etc/crypto-policies", "/usr",          "/lib",
	"/lib64",           "/run/systemd/resolve", "/dev/urandom",
};

struct readable {
	int fds[READABLE_MAX];
	size_t cnt;
	bool too_many;
	bool foreign; /* one that the caller cannot read without capabilities */
};

static void add(struct readable *readable, const char *path)
{
	int fd = path ? open(path, O_PATH | O_CLOEXEC) : -1;

	if (fd < 0)
		return;
	if (readable->cnt < READABLE_MAX) {
		readable->fds[readable->cnt++] = fd;
		return;
	}
	close(fd);
	readable->too_many = true;
}

static void add_all(struct readable *readable, const char *const *paths, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		add(readable, paths[i]);
}

/* A recording, and the shards that links in it name. */
static void add_recording(struct readable *readable, const char *path)
{
	char *const paths[] = {(char *)path, NULL};
	FTS *walk = fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, NULL);
	FTSENT *entry;

	add(readable, path);
	while (walk && (entry = fts_read(walk))) {
		if (entry->fts_info == FTS_SL || entry->fts_info == FTS_SLNONE)
			add(readable, entry->fts_accpath);
		else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_NS ||
			 (entry->fts_statp && entry->fts_statp->st_uid != geteuid()))
			readable->foreign = true;
	}
	if (walk)
		fts_close(walk);
}

static void close_all(const struct readable *readable)
{
	for (size_t i = 0; i < readable->cnt; i++)
		close(readable->fds[i]);
}

int confine_enter(struct sandbox *sandbox, const char *const *paths, size_t cnt)
{
	struct readable readable = {0};
	int err;

	tzset();
	add_all(&readable, system_files, ARRAY_CNT(system_files));
	if (sandbox->network)
		add_all(&readable, network_files, ARRAY_CNT(network_files));
	add_all(&readable, paths, cnt);
	sandbox->readable_fds = readable.fds;
	sandbox->readable_cnt = readable.cnt;
	err = readable.too_many ? -E2BIG : sandbox_enter(sandbox);
	close_all(&readable);
	sandbox->readable_fds = NULL;
	sandbox->readable_cnt = 0;
	return err;
}

static int open_dir_of(const char *path)
{
	char *copy = path ? strdup(path) : NULL;
	int fd = copy ? open(dirname(copy), O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	free(copy);
	return fd;
}

static bool may_write(int fd)
{
	struct stat st;

	return fd < 0 || (!fstat(fd, &st) && st.st_uid == geteuid());
}

static void keep_capabilities(bool foreign, bool writes_foreign)
{
	cap_value_t kept[2];
	size_t cnt = 0;
	int err;

	if (!geteuid() && foreign)
		kept[cnt++] = CAP_DAC_READ_SEARCH;
	if (!geteuid() && writes_foreign)
		kept[cnt++] = CAP_DAC_OVERRIDE;
	err = capabilities_keep(kept, cnt);
	if (err)
		log_warn("cannot give up capabilities: %s", strerror(-err));
}

void confine_reader(const struct confine_reader *needs)
{
	const char *out_path = needs->out_path && strcmp(needs->out_path, "-") ? needs->out_path : NULL;
	struct readable *readable = calloc(1, sizeof(*readable));
	struct sandbox sandbox = {
		.network = needs->network,
		.threads = true,
		.read_only = !out_path && !needs->scratch,
		.writable_fds = {open_dir_of(out_path), out_path ? open(out_path, O_PATH | O_CLOEXEC) : -1,
				 open_dir_of(needs->scratch)},
	};
	bool writes_foreign = false;
	int err;

	/* What the C library reads of the time zone is read before. */
	tzset();
	if (!readable) {
		log_warn("this process is not confined: out of memory");
		return;
	}
	for (size_t i = 0; i < needs->path_cnt; i++)
		add_recording(readable, needs->paths[i]);
	add_all(readable, needs->files, ARRAY_CNT(needs->files));
	add_all(readable, system_files, ARRAY_CNT(system_files));
	if (needs->network)
		add_all(readable, network_files, ARRAY_CNT(network_files));
	for (size_t i = 0; i < ARRAY_CNT(sandbox.writable_fds); i++)
		writes_foreign |= !may_write(sandbox.writable_fds[i]);
	keep_capabilities(readable->foreign, writes_foreign);
	if (!readable->too_many) {
		sandbox.readable_fds = readable->fds;
		sandbox.readable_cnt = readable->cnt;
	}
	err = sandbox_enter(&sandbox);
	if (err)
		log_warn("this process is only partly confined: %s", strerror(-err));
	close_all(readable);
	for (size_t i = 0; i < ARRAY_CNT(sandbox.writable_fds); i++)
		if (sandbox.writable_fds[i] >= 0)
			close(sandbox.writable_fds[i]);
	free(readable);
}
