/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef WHYLATE_BASE_LOOPBACK_H
#define WHYLATE_BASE_LOOPBACK_H

#include <stdbool.h>

/* Whether a URL's host is this machine: localhost, 127.0.0.0/8, [::1].  No name server is asked. */
bool host_is_loopback(const char *host);

#endif
