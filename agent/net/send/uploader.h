/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sends what is in the spool's sessions (spool_files.h) and removes what the collector has.  Runs in a process of its
 * own without privilege: what comes from the network is parsed where nothing can be done with it.  Holds one request's
 * body in memory, whatever waits.
 */
#ifndef WHYLATE_NET_SEND_UPLOADER_H
#define WHYLATE_NET_SEND_UPLOADER_H

#include "net/send/collectors.h"
#include "net/send/spool_files.h"
#include "net/send/upload_client.h"

struct uploader;

/* The client and the directory stay the caller's.  NULL and errno. */
struct uploader *uploader__new(struct upload_client *client, const char *url, int root_fd, struct spool_shared *shared);
/*
 * Sends until nothing is left that may be sent now.  When to come again if nobody adds anything, CLOCK_MONOTONIC;
 * UINT64_MAX: nothing waits.  Says on stderr when the collector is lost and when it is back.
 */
uint64_t uploader__pass(struct uploader *uploader);
/* Another collector, which blocks go to while those before it are gone. */
void uploader__add(struct uploader *uploader, struct upload_client *client, const char *url);
void uploader__free(struct uploader *uploader);

#endif
