/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A terminal that is painted frame by frame, and its keys.  One at a time; ncurses is nowhere else. */
#ifndef WHYLATE_VIEW_SCREEN_H
#define WHYLATE_VIEW_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

/* Keys that are no character. */
enum screen_key {
	SCREEN_NONE = -1, /* nothing was typed */
	SCREEN_UP = 0x10000,
	SCREEN_DOWN,
	SCREEN_LEFT,
	SCREEN_RIGHT,
	SCREEN_PAGE_UP,
	SCREEN_PAGE_DOWN,
	SCREEN_HOME,
	SCREEN_END,
	SCREEN_ENTER,
	SCREEN_ESCAPE,
	SCREEN_BACKSPACE,
	SCREEN_RESIZED,
	SCREEN_OTHER,
};

/* 0, or -ENOTTY: this terminal cannot be painted. */
int screen_open(void);
void screen_close(void);
void screen_size(size_t *rows, size_t *columns);
/* Lines in the styles of view/page.h; what has no room is left out. */
void screen_paint(const char *frame);
/* Waits no longer than that for a key: a byte that was typed, or an enum screen_key. */
int screen_key(int wait_ms);

#endif
