// SPDX-License-Identifier: GPL-2.0-or-later
#include "view/screen.h"

#include "base/utf8.h"

#include <curses.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ESCAPE_MS 25 /* an Esc that nothing follows for so long is a key of its own */

static SCREEN *terminal;
static bool has_colour;

int screen_open(void)
{
	terminal = newterm(NULL, stdout, stdin);
	if (!terminal)
		return -ENOTTY;
	set_term(terminal);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	curs_set(0);
	has_colour = !getenv("NO_COLOR") && has_colors() && start_color() == OK && use_default_colors() == OK &&
		     init_pair(1, COLOR_RED, -1) == OK;
	return 0;
}

void screen_close(void)
{
	if (!terminal)
		return;
	endwin();
	delscreen(terminal);
	terminal = NULL;
}

void screen_size(size_t *rows, size_t *columns)
{
	int y, x;

	getmaxyx(stdscr, y, x);
	*rows = (size_t)y;
	*columns = (size_t)x;
}

/* The styles of view/page.c. */
static void set_style(const char *codes)
{
	if (!strcmp(codes, "1"))
		attrset(A_BOLD);
	else if (!strcmp(codes, "1;31"))
		attrset(A_BOLD | (has_colour ? COLOR_PAIR(1) : 0));
	else if (!strcmp(codes, "2"))
		attrset(A_DIM);
	else if (!strcmp(codes, "7"))
		attrset(A_REVERSE);
	else
		attrset(A_NORMAL);
}

/* Printable text up to the next style or the end of the line; at most `room` columns of it are shown. */
static const char *put_text(const char *text, size_t *room)
{
	size_t len = strcspn(text, "\033\n");
	char *copy = strndup(text, len);

	if (copy && *room) {
		copy[utf8_fit(copy, *room)] = '\0';
		addstr(copy);
		*room -= utf8_width(copy);
	}
	free(copy);
	return text + len;
}

static const char *take_style(const char *text)
{
	char codes[8] = "";
	size_t len;

	if (text[1] != '[')
		return text + 1;
	text += 2;
	len = strcspn(text, "m\n");
	if (len < sizeof(codes)) {
		memcpy(codes, text, len);
		codes[len] = '\0';
	}
	set_style(codes);
	return text + len + (text[len] == 'm');
}

void screen_paint(const char *frame)
{
	size_t rows, columns, room;

	screen_size(&rows, &columns);
	erase();
	attrset(A_NORMAL);
	for (size_t row = 0; *frame && row < rows; row++) {
		room = columns;
		move((int)row, 0);
		while (*frame && *frame != '\n')
			frame = *frame == '\033' ? take_style(frame) : put_text(frame, &room);
		frame += *frame == '\n';
	}
	refresh();
}

int screen_key(int wait_ms)
{
	int key;

	timeout(wait_ms);
	key = getch();
	switch (key) {
	case ERR:
		return SCREEN_NONE;
	case KEY_UP:
		return SCREEN_UP;
	case KEY_DOWN:
		return SCREEN_DOWN;
	case KEY_LEFT:
		return SCREEN_LEFT;
	case KEY_RIGHT:
		return SCREEN_RIGHT;
	case KEY_PPAGE:
		return SCREEN_PAGE_UP;
	case KEY_NPAGE:
		return SCREEN_PAGE_DOWN;
	case KEY_HOME:
		return SCREEN_HOME;
	case KEY_END:
		return SCREEN_END;
	case KEY_ENTER:
	case '\r':
	case '\n':
		return SCREEN_ENTER;
	case 27:
		return SCREEN_ESCAPE;
	case KEY_BACKSPACE:
	case 127:
	case '\b':
		return SCREEN_BACKSPACE;
	case KEY_RESIZE:
		return SCREEN_RESIZED;
	}
	return key >= 0 && key < 256 ? key : SCREEN_OTHER;
}
