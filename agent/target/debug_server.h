/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Debug files that a debuginfod server has.  libdebuginfod asks the servers of DEBUGINFOD_URLS in a process of its own,
 * whylate-fetch, which has no capability: what a server sends is parsed there, and no thread that records waits for
 * the network.  One file is fetched at a time.  Any thread.
 */
#ifndef WHYLATE_TARGET_DEBUG_SERVER_H
#define WHYLATE_TARGET_DEBUG_SERVER_H

/*
 * A descriptor of the debug file of a build id (hex), for the caller to close; -ENOENT: there is none, or no server is
 * named; -EAGAIN: this thread may not wait (elf_reader_patience()) and asks again later.
 */
int debug_server_find(const char *build_id);

#endif
