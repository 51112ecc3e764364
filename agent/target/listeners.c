// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/order.h"
#include "target/proc_file.h"
#include "target/target.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define TCP_STATE_LISTEN  0x0a    /* TCP_LISTEN */
#define UDP_STATE_CLOSE   0x07    /* TCP_CLOSE: a datagram socket without a peer */
#define UNIX_FLAG_LISTENS 0x10000 /* __SO_ACCEPTCON */

typedef VEC(uint64_t) inode_set; /* sorted */

ORDER(inode_cmp, uint64_t, BY(*a, *b));

static bool inode_set_has(const inode_set *inodes, uint64_t ino)
{
	return inodes->cnt && bsearch(&ino, inodes->items, inodes->cnt, sizeof(ino), inode_cmp);
}

static int inode_set_add_process(inode_set *inodes, pid_t pid)
{
	DIR *dir = proc_dir("%d/fd", pid);
	const struct dirent *entry;
	char path[PATH_MAX];
	uint64_t ino;
	int err = 0;

	while (!err && (entry = dir_next(dir))) {
		proc_path(path, sizeof(path), "%d/fd/%s", pid, entry->d_name);
		ino = proc_link_number(path, "socket");
		if (ino)
			err = vec_push(inodes, ino);
	}
	err = dir_close(dir, err);
	return err == -ENOENT ? -ESRCH : err;
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

/* One line of net/tcp, tcp6, udp or udp6: is it a listener? */
static bool inet_listens(const char *line, bool udp, uint16_t *listen_port, uint64_t *listen_ino)
{
	unsigned port, peer_port, state;
	uint64_t ino;

	if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%x %x %*x:%*x %*x:%*x %*x %*u %*d %" SCNu64, &port,
		   &peer_port, &state, &ino) != 4)
		return false;
	if (state != (udp ? UDP_STATE_CLOSE : TCP_STATE_LISTEN) || peer_port || !port || port > UINT16_MAX)
		return false;
	*listen_port = port;
	*listen_ino = ino;
	return true;
}

/* 1 when it is a listener of one of these inodes. */
static int inet_parse(const char *line, bool udp, const inode_set *inodes, struct target_listener *listener)
{
	uint16_t port;
	uint64_t ino;

	if (!inet_listens(line, udp, &port, &ino) || !inode_set_has(inodes, ino))
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

static const char *const tables[] = {"net/tcp", "net/tcp6", "net/udp", "net/udp6", "net/unix"};
#define TABLE_CNT      (sizeof(tables) / sizeof(tables[0]))
#define INET_TABLE_CNT (TABLE_CNT - 1)

/* Is the process the first of its network namespace? */
static bool brings_netns(const target_processes *processes, size_t at, inode_set *seen)
{
	uint64_t netns = target_netns(processes->items[at].pid);

	for (size_t i = 0; i < seen->cnt; i++)
		if (seen->items[i] == netns)
			return false;
	return !vec_push(seen, netns);
}

int target_listeners_read(const target_processes *processes, target_listeners *listeners)
{
	inode_set inodes = {0}, seen = {0};
	int err = 0;

	if (!processes->cnt)
		return -ESRCH;
	for (size_t i = 0; i < processes->cnt; i++) {
		err = inode_set_add_process(&inodes, processes->items[i].pid);
		/* One of several may have gone meanwhile. */
		if (err == -ENOMEM || (err && processes->cnt == 1))
			goto cleanup;
	}
	err = 0;
	if (!inodes.cnt)
		goto cleanup;
	vec_sort(&inodes, inode_cmp);
	for (size_t p = 0; p < processes->cnt && !err; p++) {
		if (!brings_netns(processes, p, &seen))
			continue;
		for (size_t i = 0; i < TABLE_CNT && !err; i++)
			err = table_read(processes->items[p].pid, tables[i], &inodes, listeners);
	}
cleanup:
	vec_free(&inodes);
	vec_free(&seen);
	return err;
}

/* --- who listens there? ------------------------------------------------------------------------------------------- */

/* Adds the listening sockets of one table, as owners without a process. */
static int sockets_add(pid_t pid, const char *table, uint16_t port, target_port_owners *sockets)
{
	FILE *file = proc_open(pid, table);
	char *line = NULL;
	size_t room = 0;
	int err = 0;

	while (file && !err && getline(&line, &room, file) > 0) {
		struct target_port_owner socket = {.udp = !strncmp(table, "net/udp", 7)};

		if (inet_listens(line, socket.udp, &socket.port, &socket.ino) && (!port || socket.port == port))
			err = vec_push(sockets, socket);
	}
	free(line);
	if (file)
		fclose(file);
	return err;
}

static int owners_add(pid_t pid, const target_port_owners *sockets, target_port_owners *owners)
{
	inode_set inodes = {0};
	int err = inode_set_add_process(&inodes, pid);

	vec_sort(&inodes, inode_cmp);
	for (size_t i = 0; i < sockets->cnt && err != -ENOMEM; i++) {
		struct target_port_owner owner = sockets->items[i];

		owner.pid = pid;
		if (inode_set_has(&inodes, owner.ino))
			err = vec_push(owners, owner);
	}
	vec_free(&inodes);
	return err == -ENOMEM ? err : 0;
}

int target_port_owners_read(const target_processes *processes, uint16_t port, target_port_owners *owners)
{
	target_port_owners sockets = {0};
	inode_set seen = {0};
	int err = 0;

	for (size_t p = 0; p < processes->cnt && !err; p++) {
		if (!brings_netns(processes, p, &seen))
			continue;
		for (size_t i = 0; i < INET_TABLE_CNT && !err; i++)
			err = sockets_add(processes->items[p].pid, tables[i], port, &sockets);
	}
	for (size_t p = 0; p < processes->cnt && sockets.cnt && !err; p++)
		err = owners_add(processes->items[p].pid, &sockets, owners);
	vec_free(&sockets);
	vec_free(&seen);
	return err;
}
