/* SPDX-License-Identifier: MIT */
/* table.c - text and numbers for people and for parsers */
#include "kmem.h"

#include <inttypes.h>

static bool is_printable(unsigned char c)
{
	return c >= ' ' && c < 0x7f;
}

void print_clean(FILE *f, const char *text)
{
	for (; *text; text++)
		putc(is_printable((unsigned char)*text) ? *text : '_', f);
}

void print_word(FILE *f, const char *text, int width)
{
	int written = 0;

	if (!*text)
		text = "_";
	for (; *text; text++, written++)
		putc(is_printable((unsigned char)*text) && *text != ' ' ? *text : '_', f);
	if (written < width)
		fprintf(f, "%*s", width - written, "");
}

/* Bytes of the UTF-8 sequence at @text; 0: it is none, or too long a form. */
static unsigned int utf8_length(const char *text)
{
	const unsigned char *c = (const unsigned char *)text;
	unsigned int len = c[0] < 0xc2 ? 0 : c[0] < 0xe0 ? 2 : c[0] < 0xf0 ? 3 :
			   c[0] < 0xf5 ? 4 : 0;
	unsigned int i;

	if ((c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xed && c[1] > 0x9f) ||
	    (c[0] == 0xf0 && c[1] < 0x90) || (c[0] == 0xf4 && c[1] > 0x8f))
		return 0;
	for (i = 1; i < len; i++)
		if ((c[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

unsigned int text_length(const char *text)
{
	return (unsigned char)*text < 0x80 ? 1 : utf8_length(text);
}

void json_string(FILE *f, const char *text)
{
	putc('"', f);
	while (*text) {
		unsigned char c = (unsigned char)*text;
		unsigned int len = text_length(text);

		if (c == '"' || c == '\\')
			fprintf(f, "\\%c", c);
		else if (c < 0x20 || c == 0x7f)
			fprintf(f, "\\u%04x", c);
		else if (len)
			fwrite(text, 1, len, f);
		else
			fputs("\\ufffd", f);
		text += len ? len : 1;
	}
	putc('"', f);
}

void json_number(FILE *f, const char *name, uint64_t value)
{
	fprintf(f, ", \"%s\": %" PRIu64, name, value);
}

const char *size_text(char buf[SIZE_TEXT], double bytes, bool exact)
{
	static const char units[] = "KMGTPE";
	const char *unit = units;

	if (exact || bytes < 1000) {
		snprintf(buf, SIZE_TEXT, "%.0f", bytes);
		return buf;
	}
	/* What rounds to 1000.0 is one of the next unit. */
	for (bytes /= 1000; bytes >= 999.95 && unit[1]; bytes /= 1000)
		unit++;
	snprintf(buf, SIZE_TEXT, "%.1f%c", bytes, *unit);
	return buf;
}

double percent(double part, double whole)
{
	return whole > 0 ? part * 100 / whole : 100;
}
