/* SPDX-License-Identifier: MIT */
/*
 * top_screen.c - kmem top on a terminal
 *
 * Whatever ends it, but SIGKILL, the terminal is as it was before: signals are held back
 * but while it waits, and ncurses has a handler for SIGTSTP.
 */
#include "top.h"

#include <ctype.h>
#include <curses.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ESCAPE		27
#define ESCAPE_MS	25
#define MAX_SILENCE	3
#define MIN_INTERVAL	50000000u
#define MAX_INTERVAL	86400000000000u

/* A terminal: how many rows the view has. */
struct screen {
	struct top *top;
	size_t nr_rows;
	bool done;
};

static void put_text(char *text, unsigned int heading)
{
	unsigned int line = 0;
	char *next;

	for (; *text && line < (unsigned int)LINES; text = next, line++) {
		next = text + strcspn(text, "\n");
		if (*next)
			*next++ = '\0';
		if (line == heading)
			attron(A_REVERSE);
		/* The last place of the last line scrolls nothing here. */
		mvaddnstr((int)line, 0, text, COLS);
		if (line == heading)
			attroff(A_REVERSE);
	}
}

static void draw(struct screen *s)
{
	const struct top_size size = { (unsigned int)COLS, (unsigned int)LINES };
	unsigned int heading = 0;
	size_t len, room;
	char *text = NULL;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return;
	s->nr_rows = top_render(f, s->top, &size, &heading);
	room = size.height > heading + 1 ? size.height - heading - 1 : 1;
	fclose(f);
	if (!text)
		return;
	erase();
	put_text(text, heading);
	free(text);
	/* At the end of what is typed, else out of the way. */
	if (s->top->asking)
		move((int)heading - 1, (int)strlen("Filter: ") + (int)strlen(s->top->input));
	else
		move(LINES - 1, 0);
	curs_set(s->top->asking);
	refresh();
	if (s->top->skip && s->top->skip + room > s->nr_rows) {
		s->top->skip = s->nr_rows > room ? s->nr_rows - room : 0;
		draw(s);
	}
}

static void resize(void)
{
	struct winsize size;

	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col)
		resizeterm(size.ws_row, size.ws_col);
	clearok(curscr, TRUE);
}

static void type(struct top *top, int key)
{
	size_t len = strlen(top->input);

	if (key == '\n' || key == '\r' || key == KEY_ENTER) {
		top->asking = false;
		top->skip = 0;
		if (!top_filter(top, top->input))
			top->message = "This is no pattern; the filter is as before.";
	} else if (key == ESCAPE) {
		top->asking = false;
	} else if (key == KEY_BACKSPACE || key == 127 || key == '\b') {
		top->input[len ? len - 1 : 0] = '\0';
	} else if (key == 'U' - '@') {
		top->input[0] = '\0';
	} else if (key >= ' ' && key < 127 && len + 1 < sizeof(top->input)) {
		top->input[len] = (char)key;
		top->input[len + 1] = '\0';
	}
}

/* Down by @rows, or up; draw() keeps it within what there is. */
static void scroll_by(struct top *top, long rows)
{
	if (rows < 0 && top->skip < (size_t)-rows)
		top->skip = 0;
	else
		top->skip += (size_t)rows;
}

static bool move_with(const struct screen *s, int key)
{
	long page = LINES > 10 ? LINES - 8 : 1;

	switch (key) {
	case KEY_DOWN:
		scroll_by(s->top, 1);
		return true;
	case KEY_UP:
		scroll_by(s->top, -1);
		return true;
	case KEY_NPAGE:
		scroll_by(s->top, page);
		return true;
	case KEY_PPAGE:
		scroll_by(s->top, -page);
		return true;
	case KEY_HOME:
		s->top->skip = 0;
		return true;
	case KEY_END:
		s->top->skip = s->nr_rows;
		return true;
	default:
		return false;
	}
}

static void show_view(struct top *top, enum top_view view)
{
	top->view = view;
	top->skip = 0;
}

static void change_interval(struct top *top, bool longer)
{
	uint64_t interval = longer ? top->interval * 2 : top->interval / 2;

	if (interval >= MIN_INTERVAL && interval <= MAX_INTERVAL)
		top->interval = interval;
}

static bool choose_view(struct top *top, int key)
{
	switch (key) {
	case 'h':
	case '?':
		show_view(top, top->view == TOP_HELP ? TOP_CACHES : TOP_HELP);
		return true;
	case ESCAPE:
	case '1':
		show_view(top, TOP_CACHES);
		return true;
	case '2':
		show_view(top, TOP_GROUPS);
		return true;
	case '3':
		show_view(top, TOP_RCU);
		return true;
	case '\t':
		show_view(top, top->view >= TOP_RCU ? TOP_CACHES :
			  (enum top_view)(top->view + 1));
		return true;
	default:
		return false;
	}
}

static void press(struct screen *s, int key)
{
	struct top *top = s->top;

	if (choose_view(top, key) || move_with(s, key))
		return;
	switch (key) {
	case 'q':
		s->done = true;
		break;
	case '/':
		memcpy(top->input, top->pattern, sizeof(top->input));
		top->asking = true;
		break;
	case ' ':
		top->paused = !top->paused;
		break;
	case 'i':
		top->inverted = !top->inverted;
		break;
	case 'z':
		top->zero = !top->zero;
		break;
	case '+':
	case '-':
		change_interval(top, key == '+');
		break;
	case 'L' - '@':
		clearok(curscr, TRUE);
		break;
	default:
		if (key > 0 && key < 127 && isalpha(key) &&
		    top_find_letter((char)key, &top->sort))
			top->skip = 0;
	}
}

/* All keys there are; false: the terminal has gone. */
static bool read_keys(struct screen *s, int *silence)
{
	int key = getch();

	if (key == ERR)
		return ++*silence < MAX_SILENCE;
	*silence = 0;
	s->top->message = NULL;
	for (; key != ERR && !s->done; key = getch()) {
		if (key == KEY_RESIZE)
			continue;
		if (s->top->asking)
			type(s->top, key);
		else
			press(s, key);
	}
	return top_arrange(s->top);
}

static enum watch_event loop(struct screen *s)
{
	enum watch_event event = WATCH_DONE;
	struct top *top = s->top;
	uint64_t last = 0;
	int silence = 0;

	while (!s->done) {
		if (event == WATCH_DONE && (!top->paused || !last)) {
			event = top_sample(top);
			if (event != WATCH_DONE)
				return event;
			/* Rates are known soon, not after a whole interval. */
			last = last ? watch_now() : watch_now() - top->interval +
				      (top->interval < MIN_INTERVAL * 5 ? top->interval :
				       MIN_INTERVAL * 5);
		} else if (event == WATCH_DONE) {
			last = watch_now();
		}
		draw(s);
		event = watch_wait(&top->watch, last + top->interval, STDIN_FILENO);
		if (event == WATCH_RESIZED)
			resize();
		else if (event == WATCH_INPUT && !read_keys(s, &silence))
			return WATCH_STOPPED;
		else if (event == WATCH_STOPPED || event == WATCH_ENDED)
			return event;
	}
	return WATCH_DONE;
}

int top_run_screen(struct top *top)
{
	struct screen s = { .top = top };
	const char *type_name = getenv("TERM");
	enum watch_event event;
	SCREEN *terminal;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		complain("standard input or output is no terminal (see --once)");
		return EXIT_FAILED;
	}
	terminal = newterm(NULL, stdout, stdin);
	if (!terminal) {
		complain("terminal \"%.100s\" is unknown, or can do too little (see --once)",
			 type_name ? type_name : "");
		return EXIT_FAILED;
	}
	set_escdelay(ESCAPE_MS);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	event = loop(&s);
	endwin();
	delscreen(terminal);
	return watch_finish(&top->watch, event, false);
}
