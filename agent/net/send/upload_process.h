/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The process that sends what recordings leave in a spool: a recording's child, or `whylate upload`, which takes
 * recordings at a socket in the spool's directory.  It becomes the owner of that directory and gives up every
 * privilege: it parses what comes from the network, and only capture needs privilege.  It has one thread.
 */
#ifndef WHYLATE_NET_SEND_UPLOAD_PROCESS_H
#define WHYLATE_NET_SEND_UPLOAD_PROCESS_H

#include "net/send/spool_files.h"

#include <sys/types.h>

struct upload_opts {
	const char *url;                                         /* one, or several behind commas */
	const char *host;                                        /* by which it prefers one of them */
	const char *cert_path, *key_path, *ca_path, *token_path; /* or NULL */
};

struct upload_process;

/*
 * Reads keys and certificates, while we may still read them.  NULL and errno after one line that says what is wrong
 * with what the user gave.
 */
struct upload_process *upload_process__new(const struct upload_opts *opts);
void upload_process__free(struct upload_process *process);

/* Whom a spool belongs to that is root's and empty: a user's name. */
const char *upload_user(void);

/*
 * For a child, whose parent shares the page with it: sends until the page says stop.  The descriptors are its own.
 * The status to exit with.
 */
int upload_process__run(struct upload_process *process, pid_t parent, int root_fd, int wake_fd,
			struct spool_shared *shared);

/*
 * Sends for each recording that connects to the socket SPOOL_SOCKET of the directory, until SIGTERM or SIGINT.  0 or
 * -errno after a line.
 */
int upload_process__serve(struct upload_process *process, const char *dir);

/* --- the socket --------------------------------------------------------------------------------------------------- */

#define SPOOL_SOCKET "uploader"

/* The only packet, from the recording; with two descriptors: the page (a memfd that cannot shrink) and an eventfd. */
struct spool_hello {
	char magic[8];
	uint64_t shared_sz; /* of struct spool_shared: another version's differs */
};
#define SPOOL_HELLO_MAGIC "WLHELLO1"

#endif
