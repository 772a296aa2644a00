// SPDX-License-Identifier: MIT
/*
 * tenants_command.c - the lines that clients send, and their answers
 *
 *	LOGIN tenant		who the client is from now on
 *	SET key value		the value is the rest of the line
 *	CACHE key value		the same, of a value that may be dropped at the limit
 *	GET key			OK value
 *	DEL key
 *	STAT [file]		files of the tenant's group: memory.stat, say
 *	QUIT
 *
 * An answer is one line: "OK", perhaps with more after a space, or "ERR" and why.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tenants.h"

static void reply(struct session *session, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* A line; what it says is much shorter than the room. */
static void reply(struct session *session, const char *fmt, ...)
{
	va_list args;
	int len;

	va_start(args, fmt);
	len = vsnprintf(session->reply, MAX_REPLY, fmt, args);
	va_end(args);
	session->reply[len] = '\n';
	session->reply_len = (size_t)len + 1;
}

/* What stands before the next space; @line is what stands behind it then. */
static struct span next_word(struct span *line)
{
	const char *space = memchr(line->at, ' ', line->len);
	struct span word = *line;

	if (space)
		word.len = (size_t)(space - line->at);
	line->at += word.len + (space != NULL);
	line->len -= word.len + (space != NULL);
	return word;
}

static bool is_key(struct span key)
{
	size_t i;

	for (i = 0; i < key.len; i++)
		if (iscntrl((unsigned char)key.at[i]) || key.at[i] == ' ')
			return false;
	return key.len && key.len <= MAX_KEY;
}

/* Letters, digits, - and _: so no path, and not "." */
static bool is_name(struct span name)
{
	size_t i;

	for (i = 0; i < name.len; i++)
		if (!isalnum((unsigned char)name.at[i]) && name.at[i] != '-' &&
		    name.at[i] != '_')
			return false;
	return name.len && name.len <= MAX_NAME;
}

static void logout(struct session *session)
{
	if (session->tenant)
		tenant_logout(session->tenant);
	session->tenant = NULL;
}

static void run_login(struct session *session, struct span args)
{
	struct tenant *tenant;

	if (!is_name(args)) {
		reply(session, "ERR LOGIN takes a name of up to %u letters, digits, - and _",
		      MAX_NAME);
		return;
	}
	tenant = tenant_login(session->store, args);
	if (!tenant) {
		reply(session, "ERR no group for the tenant: %s", strerror(errno));
		return;
	}
	logout(session);
	session->tenant = tenant;
	reply(session, "OK tenant %s, limit %s", tenant->name, tenant->limit);
}

static void set(struct session *session, struct span args, bool droppable)
{
	const struct tenant *tenant = session->tenant;
	struct span key = next_word(&args);

	/* A key that ends the line has no space behind it, so not even an empty value. */
	if (!is_key(key) || args.at == key.at + key.len) {
		reply(session, "ERR a key of up to %u bytes and a value are wanted", MAX_KEY);
		return;
	}
	switch (tenant_set(session->tenant, key, args, droppable)) {
	case 0:
		reply(session, "OK");
		break;
	case -EDQUOT:
		reply(session, "ERR out of memory: tenant %s is at its limit of %s",
		      tenant->name, tenant->limit);
		break;
	case -ENOSPC:
		reply(session, "ERR out of memory: all tenants are at their limit of %s",
		      session->store->limits->total);
		break;
	default:
		reply(session, "ERR out of memory");
	}
}

static void run_set(struct session *session, struct span args)
{
	set(session, args, false);
}

static void run_cache(struct session *session, struct span args)
{
	set(session, args, true);
}

static void run_get(struct session *session, struct span args)
{
	ssize_t len;

	if (!is_key(args)) {
		reply(session, "ERR a key of up to %u bytes is wanted", MAX_KEY);
		return;
	}
	len = tenant_get(session->tenant, args, session->reply + 3);
	if (len < 0) {
		reply(session, "ERR no such key");
		return;
	}
	memcpy(session->reply, "OK ", 3);
	session->reply[len + 3] = '\n';
	session->reply_len = (size_t)len + 4;
}

static void run_del(struct session *session, struct span args)
{
	if (!is_key(args))
		reply(session, "ERR a key of up to %u bytes is wanted", MAX_KEY);
	else if (tenant_delete(session->tenant, args))
		reply(session, "ERR no such key");
	else
		reply(session, "OK");
}

/* Append one file in one line: its name, then what it says. False: no such file. */
static bool append_file(struct session *session, const char *file)
{
	char text[4096];
	ssize_t len = mem_cgroup_read(session->tenant->memcg, file, text, sizeof(text));
	ssize_t i;

	if (len < 0)
		return false;
	while (len && text[len - 1] == '\n')
		len--;
	for (i = 0; i < len; i++)
		if (text[i] == '\n')
			text[i] = ' ';
	session->reply_len += (size_t)sprintf(session->reply + session->reply_len, " %s %.*s",
					      file, (int)len, text);
	return true;
}

static void run_stat(struct session *session, struct span args)
{
	static const char *const usual[] = {
		"memory.current", "memory.peak", "memory.max", "memory.stat", "memory.events",
	};
	bool known = true;
	char file[64];
	size_t i;

	memcpy(session->reply, "OK", 2);
	session->reply_len = 2;
	if (args.len) {
		snprintf(file, sizeof(file), "%.*s", (int)args.len, args.at);
		known = args.len < sizeof(file) && append_file(session, file);
	}
	for (i = 0; !args.len && i < sizeof(usual) / sizeof(*usual); i++)
		known &= append_file(session, usual[i]);
	if (known)
		session->reply[session->reply_len++] = '\n';
	else
		reply(session, "ERR no such file");
}

static void run_quit(struct session *session, struct span args)
{
	(void)args;
	session->quit = true;
	reply(session, "OK");
}

static const struct command {
	const char *name;
	bool needs_login;
	void (*run)(struct session *session, struct span args);
} commands[] = {
	{ "LOGIN", false, run_login },
	{ "SET", true, run_set },
	{ "CACHE", true, run_cache },
	{ "GET", true, run_get },
	{ "DEL", true, run_del },
	{ "STAT", true, run_stat },
	{ "QUIT", false, run_quit },
};

void session_run(struct session *session, struct span line)
{
	struct span word = next_word(&line);
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		if (strlen(commands[i].name) != word.len ||
		    memcmp(commands[i].name, word.at, word.len) != 0)
			continue;
		if (commands[i].needs_login && !session->tenant)
			reply(session, "ERR log in first");
		else
			commands[i].run(session, line);
		return;
	}
	reply(session, "ERR unknown command");
}

void session_too_long(struct session *session)
{
	reply(session, "ERR the line is longer than %u bytes", MAX_LINE);
}

void session_end(struct session *session)
{
	logout(session);
}
