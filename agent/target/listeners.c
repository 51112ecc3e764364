// SPDX-License-Identifier: GPL-2.0-or-later
#include "target/proc_file.h"
#include "target/target.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TCP_STATE_LISTEN  0x0a    /* TCP_LISTEN */
#define UDP_STATE_CLOSE   0x07    /* TCP_CLOSE: a datagram socket without a peer */
#define UNIX_FLAG_LISTENS 0x10000 /* __SO_ACCEPTCON */

typedef VEC(uint64_t) inode_set; /* sorted */

static int inode_cmp(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

static bool inode_set_has(const inode_set *inodes, uint64_t ino)
{
	return inodes->cnt && bsearch(&ino, inodes->items, inodes->cnt, sizeof(ino), inode_cmp);
}

static int inode_set_add_process(inode_set *inodes, pid_t pid)
{
	char path[300];
	struct dirent *entry;
	uint64_t ino;
	int err = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!err && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", pid, entry->d_name);
		ino = proc_link_number(path, "socket");
		if (ino)
			err = vec_push(inodes, ino);
	}
	closedir(dir);
	return err;
}

static int listener_add(target_listeners *listeners, const struct target_listener *listener)
{
	for (size_t i = 0; i < listeners->cnt; i++) {
		const struct target_listener *known = &listeners->items[i];

		if (known->family == listener->family && known->port == listener->port &&
		    known->path_len == listener->path_len && !memcmp(known->path, listener->path, listener->path_len))
			return 0;
	}
	return vec_push(listeners, *listener);
}

/* One line of net/tcp, tcp6, udp or udp6: 1 when it is a listener of one of these inodes. */
static int inet_parse(const char *line, bool udp, const inode_set *inodes, struct target_listener *listener)
{
	unsigned port, peer_port, state;
	uint64_t ino;

	if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%x %x %*x:%*x %*x:%*x %*x %*u %*d %" SCNu64, &port,
		   &peer_port, &state, &ino) != 4)
		return 0;
	if (state != (udp ? UDP_STATE_CLOSE : TCP_STATE_LISTEN) || peer_port || !port || port > UINT16_MAX)
		return 0;
	if (!inode_set_has(inodes, ino))
		return 0;
	memset(listener, 0, sizeof(*listener));
	listener->family = udp ? TARGET_UDP : TARGET_TCP;
	listener->port = port;
	snprintf(listener->name, sizeof(listener->name), "%s:%u", udp ? "udp" : "tcp", port);
	return 1;
}

/* Likewise for net/unix, whose paths are raw bytes but for NUL, which shows as '@'. */
static int unix_parse(const char *line, const inode_set *inodes, struct target_listener *listener)
{
	unsigned flags;
	uint64_t ino;
	int path_off = 0;
	size_t len;

	if (sscanf(line, "%*x: %*x %*x %x %*x %*x %" SCNu64 "%n", &flags, &ino, &path_off) != 2 || !path_off)
		return 0;
	if (!(flags & UNIX_FLAG_LISTENS) || line[path_off] != ' ' || !inode_set_has(inodes, ino))
		return 0;
	path_off++;
	len = strlen(line + path_off);
	if (!len || len > sizeof(listener->path))
		return 0;
	memset(listener, 0, sizeof(*listener));
	listener->family = TARGET_UNIX;
	listener->path_len = len;
	memcpy(listener->path, line + path_off, len);
	snprintf(listener->name, sizeof(listener->name), "unix:%s", line + path_off);
	proc_make_printable(listener->name);
	if (listener->path[0] == '@')
		listener->path[0] = '\0';
	return 1;
}

/* 0 or -errno; a family that this kernel does not have is no error. */
static int table_read(pid_t pid, const char *table, const inode_set *inodes, target_listeners *listeners)
{
	FILE *file = proc_open(pid, table);
	struct target_listener listener;
	char *line = NULL;
	size_t room = 0;
	ssize_t len;
	int err = 0;

	if (!file)
		return errno == ESRCH ? 0 : -errno;
	while (!err && (len = getline(&line, &room, file)) > 0) {
		int found;

		if (line[len - 1] == '\n')
			line[len - 1] = '\0';
		if (!strcmp(table, "net/unix"))
			found = unix_parse(line, inodes, &listener);
		else
			found = inet_parse(line, !strncmp(table, "net/udp", 7), inodes, &listener);
		if (found)
			err = listener_add(listeners, &listener);
	}
	free(line);
	fclose(file);
	return err;
}

int target_listeners_read(const target_processes *processes, target_listeners *listeners)
{
	static const char *const tables[] = {"net/tcp", "net/tcp6", "net/udp", "net/udp6", "net/unix"};
	inode_set inodes = {0};
	int err = 0;

	if (!processes->cnt)
		return -ESRCH;
	for (size_t i = 0; i < processes->cnt; i++) {
		err = inode_set_add_process(&inodes, processes->items[i].pid);
		/* A child may have gone meanwhile; the first is the target itself. */
		if (err == -ENOMEM || (err && !i))
			goto cleanup;
	}
	err = 0;
	if (!inodes.cnt)
		goto cleanup;
	qsort(inodes.items, inodes.cnt, sizeof(inodes.items[0]), inode_cmp);
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]) && !err; i++)
		err = table_read(processes->items[0].pid, tables[i], &inodes, listeners);
cleanup:
	vec_free(&inodes);
	return err;
}
