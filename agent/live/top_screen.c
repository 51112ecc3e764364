// SPDX-License-Identifier: GPL-2.0-or-later
/* `whylate top` on a terminal: keys, frames, and what the recorder says meanwhile. */
#include "base/clock.h"
#include "base/exit_code.h"
#include "base/log.h"
#include "live/top_look.h"
#include "live/top_run.h"
#include "view/screen.h"
#include "view/top.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BUCKET_CNT 60
#define KEY_MS     100
#define SPEED_MAX  256.0
#define SPEED_MIN  0.125
#define EXPORT_NS  60000000000ULL
#define MESSAGE_NS 8000000000ULL
/* The analysis takes a fifth of a CPU at most. */
#define REST       4
#define TYPE_SZ    128
#define SAID_SZ    4096
#define REPAINT_NS 1000000000ULL

struct screen_state {
	struct top_source *source;
	const struct top_options *options;
	struct top_view view;
	struct look *shown, *coming;
	uint64_t next_ts; /* the next look; 0: at once */
	uint64_t look_cnt;
	bool stale; /* what is shown is not of the moment: a step, another type */
	bool over;
	bool is_typing;
	char typing[TYPE_SZ], type[TYPE_SZ + 2];
	char message[PATH_MAX + 64];
	uint64_t message_ts;
	uint64_t painted_ts; /* 0: the screen is to be painted */
	pid_t exporter;
	char export_path[PATH_MAX];
	/* stderr of this process and of the recorder, while the terminal is painted. */
	int said_fd, stderr_fd;
	char said[SAID_SZ];
	size_t said_len;
};

static void say(struct screen_state *state, const char *text)
{
	snprintf(state->message, sizeof(state->message), "%s", text);
	state->message_ts = monotonic_ns();
}

/* --- stderr --------------------------------------------------------------------------------------------------------
 */

/* Before the recorder starts, whose messages are to come here, too. */
static int catch_stderr(struct screen_state *state)
{
	int fds[2];

	state->said_fd = state->stderr_fd = -1;
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	state->said_fd = fds[0];
	state->stderr_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (state->stderr_fd < 0 || dup2(fds[1], STDERR_FILENO) < 0) {
		close(fds[1]);
		return -errno;
	}
	close(fds[1]);
	return 0;
}

static void read_said(struct screen_state *state)
{
	char text[SAID_SZ];
	ssize_t sz;

	while (state->said_fd >= 0 && (sz = read(state->said_fd, text, sizeof(text) - 1)) > 0) {
		char *line = text, *end;

		text[sz] = '\0';
		/* What was said last is shown, and all of it at the end as far as it fits. */
		if (state->said_len + (size_t)sz < sizeof(state->said)) {
			memcpy(state->said + state->said_len, text, (size_t)sz);
			state->said_len += (size_t)sz;
		}
		while ((end = strchr(line, '\n')) && end[1])
			line = end + 1;
		line[strcspn(line, "\n")] = '\0';
		say(state, line);
	}
}

static void release_stderr(struct screen_state *state)
{
	read_said(state);
	if (state->stderr_fd >= 0) {
		dup2(state->stderr_fd, STDERR_FILENO);
		close(state->stderr_fd);
	}
	if (state->said_fd >= 0)
		close(state->said_fd);
	if (state->said_len)
		fwrite(state->said, 1, state->said_len, stderr);
}

/* --- looks ---------------------------------------------------------------------------------------------------------
 */

static void begin_look(struct screen_state *state)
{
	struct top_source *source = state->source;
	uint64_t since_ns = source->at_wall_ns - state->options->window_ns;
	const struct look_options options = {
		.paths = source->paths,
		.path_cnt = source->path_cnt,
		.type = *state->type ? state->type : NULL,
		.since_wall_ns = since_ns > source->begin_wall_ns ? since_ns : source->begin_wall_ns,
		.until_wall_ns = source->at_wall_ns,
		.tail = state->options->tail,
		.bucket_cnt = BUCKET_CNT,
	};

	if (options.until_wall_ns <= options.since_wall_ns)
		return;
	state->coming = look__begin(&options);
	state->stale = false;
	if (!state->coming)
		say(state, "cannot analyse: out of memory");
}

static void end_look(struct screen_state *state)
{
	struct look *look = state->coming;
	uint64_t rest_ns = REST * look->took_ns;
	bool is_gap;

	look__wait(look);
	state->coming = NULL;
	state->next_ts = monotonic_ns();
	state->next_ts +=
		state->source->is_live && rest_ns > state->options->interval_ns ? rest_ns : state->options->interval_ns;
	/* Nothing was recorded so far, or nothing of that time. */
	is_gap = look->err == -ENOENT || look->err == -ESRCH || look->err == -ENODATA;
	if (look->err && !is_gap)
		say(state, strerror(-look->err));
	if (look->err && (!is_gap || (state->source->is_live && !state->shown))) {
		look__free(look);
		return;
	}
	look__free(state->shown);
	state->shown = is_gap ? NULL : look;
	state->view.findings = is_gap ? NULL : &look->findings;
	state->view.timeline = is_gap ? NULL : &look->timeline;
	state->view.shown_wall_ns = look->options.until_wall_ns;
	state->painted_ts = 0;
	if (is_gap)
		look__free(look);
}

/* --- a page for a browser ------------------------------------------------------------------------------------------
 */

static void format_time(char *buf, size_t sz, const char *format, uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / 1000000000);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(buf, sz, format, &tm);
}

static void begin_export(struct screen_state *state)
{
	const struct top_source *source = state->source;
	uint64_t until_ns = state->view.shown_wall_ns, since_ns = until_ns - EXPORT_NS;
	char since[32], until[32], name[64], cwd[PATH_MAX - 64], text[PATH_MAX + 64];
	int fd;

	if (!state->shown || state->exporter || !getcwd(cwd, sizeof(cwd)))
		return;
	since_ns = since_ns > source->begin_wall_ns ? since_ns : source->begin_wall_ns;
	format_time(since, sizeof(since), "%Y-%m-%dT%H:%M:%S", since_ns);
	format_time(until, sizeof(until), "%Y-%m-%dT%H:%M:%S", until_ns + 999999999);
	format_time(name, sizeof(name), "whylate-top-%Y%m%d-%H%M%S.html", until_ns);
	snprintf(state->export_path, sizeof(state->export_path), "%s/%s", cwd, name);
	/* Nobody else's: the name can be guessed, and this may be root in /tmp. */
	fd = open(state->export_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd < 0) {
		snprintf(text, sizeof(text), "%s: cannot write %s", strerror(errno), state->export_path);
		say(state, text);
		return;
	}
	close(fd);
	state->exporter = fork();
	if (!state->exporter) {
		const char **argv = calloc(source->path_cnt + 12, sizeof(*argv));
		size_t cnt = 0;

		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (!argv || fd < 0)
			_exit(EXIT_FAILED);
		argv[cnt++] = "whylate";
		argv[cnt++] = "report";
		argv[cnt++] = "--since";
		argv[cnt++] = since;
		argv[cnt++] = "--until";
		argv[cnt++] = until;
		argv[cnt++] = "--html";
		argv[cnt++] = state->export_path;
		if (*state->type) {
			argv[cnt++] = "--type";
			argv[cnt++] = state->type;
		}
		argv[cnt++] = "--";
		for (size_t i = 0; i < source->path_cnt; i++)
			argv[cnt++] = source->paths[i];
		dup2(fd, STDIN_FILENO);
		dup2(fd, STDOUT_FILENO);
		execv("/proc/self/exe", (char *const *)argv);
		_exit(127);
	}
	if (state->exporter < 0)
		state->exporter = 0;
	snprintf(text, sizeof(text), "writing %s", state->export_path);
	say(state, text);
}

static void end_export(struct screen_state *state)
{
	char text[PATH_MAX + 64];
	int status;

	if (!state->exporter || waitpid(state->exporter, &status, WNOHANG) != state->exporter)
		return;
	state->exporter = 0;
	if (WIFEXITED(status) && (WEXITSTATUS(status) == EXIT_DONE || WEXITSTATUS(status) == EXIT_LIMITS)) {
		snprintf(text, sizeof(text), "wrote %s", state->export_path);
		say(state, text);
		return;
	}
	unlink(state->export_path);
	if (!*state->message || !strncmp(state->message, "writing", 7)) {
		snprintf(text, sizeof(text), "cannot write %s", state->export_path);
		say(state, text);
	}
}

/* --- keys ----------------------------------------------------------------------------------------------------------
 */

static void type_key(struct screen_state *state, int key)
{
	size_t len = strlen(state->typing);

	if (key == SCREEN_BACKSPACE && len) {
		state->typing[len - 1] = '\0';
	} else if (key == SCREEN_ESCAPE) {
		state->is_typing = false;
	} else if (key == SCREEN_ENTER) {
		state->is_typing = false;
		/* A part of a name does as well. */
		snprintf(state->type, sizeof(state->type), strpbrk(state->typing, "*?[") || !len ? "%s" : "*%s*",
			 state->typing);
		state->stale = true;
	} else if (key >= ' ' && key < 0x100 && key != 127 && len + 1 < sizeof(state->typing)) {
		state->typing[len] = (char)key;
		state->typing[len + 1] = '\0';
	}
}

static void pause_at(struct screen_state *state, bool paused)
{
	state->view.paused = state->source->paused = paused;
}

static void step(struct screen_state *state, int direction)
{
	int64_t ns = (int64_t)state->options->interval_ns;

	pause_at(state, true);
	top_source__step(state->source, direction < 0 ? -ns : ns);
	state->stale = true;
}

/* Of a replay only. */
static void replay_key(struct screen_state *state, int key)
{
	struct top_source *source = state->source;

	if (source->is_live)
		return;
	switch (key) {
	case '+':
	case '=':
	case '>':
		source->speed = fmin(source->speed * 2, SPEED_MAX);
		break;
	case '-':
	case '<':
		source->speed = fmax(source->speed / 2, SPEED_MIN);
		break;
	case '.':
	case SCREEN_RIGHT:
		step(state, 1);
		break;
	case ',':
	case SCREEN_LEFT:
		step(state, -1);
		break;
	case 'r':
		source->at_wall_ns = source->begin_wall_ns;
		state->stale = true;
		break;
	}
}

static void move(struct screen_state *state, long lines)
{
	struct top_view *view = &state->view;
	size_t *at = view->screen == TOP_MAIN ? &view->chosen : &view->scroll;

	*at = lines < 0 && *at < (size_t)-lines ? 0 : *at + (size_t)lines;
}

static void go_to(struct screen_state *state, enum top_screen screen)
{
	state->view.screen = screen;
	state->view.scroll = 0;
}

static void take_key(struct screen_state *state, int key)
{
	struct top_view *view = &state->view;
	long page = view->rows > 10 ? (long)view->rows - 10 : 1;

	if (state->is_typing) {
		type_key(state, key);
		return;
	}
	switch (key) {
	case 'q':
		state->over = true;
		break;
	case 'p':
	case ' ':
		pause_at(state, !view->paused);
		break;
	case '/':
		state->is_typing = true;
		*state->typing = '\0';
		break;
	case 's':
		view->sort = (view->sort + 1) % TOP_SORT_CNT;
		break;
	case 'e':
		begin_export(state);
		break;
	case '?':
	case 'h':
		go_to(state, view->screen == TOP_HELP ? TOP_MAIN : TOP_HELP);
		break;
	case SCREEN_ENTER:
		if (view->screen == TOP_MAIN && state->shown)
			go_to(state, TOP_ROOT);
		break;
	case SCREEN_ESCAPE:
	case SCREEN_BACKSPACE:
		go_to(state, TOP_MAIN);
		break;
	case 'n':
		view->chosen++;
		view->scroll = 0;
		break;
	case 'j':
	case SCREEN_DOWN:
		move(state, 1);
		break;
	case 'k':
	case SCREEN_UP:
		move(state, -1);
		break;
	case SCREEN_PAGE_DOWN:
		move(state, page);
		break;
	case SCREEN_PAGE_UP:
		move(state, -page);
		break;
	case 'g':
	case SCREEN_HOME:
		move(state, LONG_MIN + 1);
		break;
	case 'G':
	case SCREEN_END:
		move(state, 1 << 20);
		break;
	default:
		replay_key(state, key);
	}
}

/* --- the loop ------------------------------------------------------------------------------------------------------
 */

static void paint(struct screen_state *state)
{
	struct top_view *view = &state->view;
	char *frame = NULL;
	size_t sz = 0;
	FILE *out = open_memstream(&frame, &sz);

	if (!out)
		return;
	screen_size(&view->rows, &view->columns);
	view->speed = state->source->speed;
	view->paused = state->source->paused;
	view->type = *state->type ? state->type : NULL;
	view->typing = state->is_typing ? state->typing : NULL;
	view->message = monotonic_ns() - state->message_ts < MESSAGE_NS && *state->message ? state->message : NULL;
	if (view->chosen && view->findings && view->chosen >= view->findings->report.cause_cnt)
		view->chosen = view->findings->report.cause_cnt ? view->findings->report.cause_cnt - 1 : 0;
	if (!view_top(out, view) && !fflush(out))
		screen_paint(frame);
	fclose(out);
	free(frame);
}

static void look_on(struct screen_state *state)
{
	struct top_source *source = state->source;
	uint64_t now_ts = monotonic_ns();
	pid_t recorder = source->recorder;

	top_source__tick(source);
	if (recorder && !source->recorder)
		say(state, source->exit_code ? "the recorder has ended; what it recorded stays"
					     : "the process has ended; what was recorded stays");
	if (!source->is_live && source->at_wall_ns >= source->end_wall_ns && !source->paused) {
		state->stale = true;
		pause_at(state, true);
	}
	if (state->coming && look__done(state->coming)) {
		end_look(state);
		state->over = state->over || (state->options->count && ++state->look_cnt == state->options->count);
	}
	if (!state->coming && (state->stale || (!source->paused && now_ts >= state->next_ts)))
		begin_look(state);
}

static int run(struct screen_state *state)
{
	if (screen_open()) {
		log_error("this terminal cannot be painted; into a pipe, lines are written");
		return EXIT_FAILED;
	}
	while (!state->over && !top_stop_requested) {
		int key = screen_key(KEY_MS);

		while (key != SCREEN_NONE && !state->over) {
			take_key(state, key);
			state->painted_ts = 0;
			key = screen_key(0);
		}
		read_said(state);
		end_export(state);
		look_on(state);
		if (!state->painted_ts || monotonic_ns() - state->painted_ts > REPAINT_NS) {
			paint(state);
			state->painted_ts = monotonic_ns();
		}
	}
	screen_close();
	return EXIT_DONE;
}

int top_run_screen(const struct top_options *options)
{
	struct screen_state *state = calloc(1, sizeof(*state));
	struct top_source source;
	int code = EXIT_FAILED, err;

	if (!state) {
		log_error("out of memory");
		return EXIT_FAILED;
	}
	*state = (struct screen_state){
		.source = &source,
		.options = options,
		.view = {.is_live = options->record != NULL,
			 .window_s = (double)options->window_ns / 1e9,
			 .colour = true},
	};
	if (options->type)
		snprintf(state->type, sizeof(state->type), "%s", options->type);
	err = catch_stderr(state);
	if (!err)
		code = top_source__open(&source, options);
	if (!err && !code) {
		code = run(state);
		look__free(state->coming);
		look__free(state->shown);
		top_source__close(&source);
		code = code ? code : source.exit_code;
		if (state->exporter)
			waitpid(state->exporter, NULL, 0);
	}
	release_stderr(state);
	free(state);
	return code;
}
