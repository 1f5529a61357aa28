/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From text to tree. The bytes are looked at first, so that what libyaml would take (other
 * encodings, other line breaks than ours) never reaches it; then its events become the tree.
 */
#include <string.h>
#include <yaml.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/conf_build.h"
#include "base/utf8.h"

/* Refuses bad UTF-8 and control characters. A carriage return is one unless a line feed follows. */
static int check_bytes(struct conf_build *build, const char *text, size_t size)
{
	struct conf_place at = { 1, 1 };
	size_t length;
	uint32_t code;

	for (size_t i = 0; i < size; i += length, at.column++) {
		length = utf8_plain(text + i, size - i, false);
		at.column += (int)length;
		i += length;
		if (i == size)
			break;
		length = utf8_size(text + i, size - i);
		if (!length)
			return conf_build_error(build, at, ERR_INVALID, "this is not valid UTF-8");
		code = utf8_code(text + i, length);
		if (code == '\r' && i + 1 < size && text[i + 1] == '\n')
			continue;
		if (utf8_is_control(code))
			return conf_build_error(build, at, ERR_INVALID,
						"a control character (U+%04X) can't stand here; "
						"in a text in double quotes it is written \\u%04x",
						code, code);
		if (code == '\n') {
			at.line++;
			at.column = 0;
		}
	}
	return 0;
}

/* What libyaml says, in words that tell what to do. */
static const struct {
	const char *problem, *text;
} problems[] = {
	{ "did not find expected key",
	  "a key is expected here; is the indentation the same as above?" },
	{ "did not find expected '-' indicator",
	  "a list goes on here, but the line does not start with \"- \"" },
	{ "did not find expected node content", "a value is expected here" },
	{ "did not find expected <document start>", "a new document starts with ---" },
	{ "mapping values are not allowed in this context",
	  "a key can't stand here; a text with \": \" in it must be in quotes" },
	{ "block sequence entries are not allowed in this context",
	  "a list can't start here; begin a new line" },
	{ "could not find expected ':'", "a colon is expected behind this key" },
	{ "found unexpected document indicator", "a new document starts inside quotes" },
	{ "found unknown escape character",
	  "this escape is not known; in single quotes \\ is just a \\" },
	{ "did not find expected hexdecimal number",
	  "hexadecimal digits are expected behind \\x, \\u or \\U" },
	{ "found invalid Unicode character escape code",
	  "this escape is not a character; write the character itself" },
	{ "found a tab character that violates indentation", "a tab can't indent; use spaces" },
	{ "found a tab character where an indentation space is expected",
	  "a tab can't indent; use spaces" },
	{ "found undefined tag handle", "tags (!) are not supported" },
};

static const char *problem_text(const char *problem, const char *at, const char *end)
{
	if (!problem)
		return "this can't be read";
	if (strcmp(problem, "found character that cannot start any token") == 0) {
		if (at < end && *at == '\t')
			return "a tab can't indent; use spaces";
		return "a text that starts with this character must be in quotes";
	}
	for (size_t i = 0; i < ARRAY_SIZE(problems); i++)
		if (strcmp(problem, problems[i].problem) == 0)
			return problems[i].text;
	return problem;
}

struct reader {
	struct conf_build build;
	yaml_parser_t parser;
	const char *text, *end;
};

/* The byte where a mark stands; marks count characters. */
static const char *mark_byte(const struct reader *reader, const yaml_mark_t *mark)
{
	const char *at = reader->text;

	for (size_t index = 0; index < mark->index && at < reader->end; index++)
		at += utf8_size(at, (size_t)(reader->end - at));
	return at;
}

static struct conf_place place_of(const yaml_mark_t *mark)
{
	return (struct conf_place){ (int)mark->line + 1, (int)mark->column + 1 };
}

static int parser_error(struct reader *reader)
{
	const yaml_mark_t *mark = &reader->parser.problem_mark,
			  *opened = &reader->parser.context_mark;
	const char *problem = reader->parser.problem;

	CHECK(reader->parser.error != YAML_MEMORY_ERROR);
	if (problem && strcmp(problem, "found unexpected end of stream") == 0)
		return conf_build_error(&reader->build, place_of(opened), ERR_INVALID,
					"the quotes that open here are not closed");
	if (problem && strncmp(problem, "did not find expected ','", 25) == 0)
		return conf_build_error(
			&reader->build, place_of(mark), ERR_INVALID,
			"a comma or the bracket that closes the one at line %d, column %d "
			"is expected here",
			place_of(opened).line, place_of(opened).column);
	return conf_build_error(&reader->build, place_of(mark), ERR_INVALID, "%s",
				problem_text(problem, mark_byte(reader, mark), reader->end));
}

static int check_properties(struct reader *reader, const yaml_event_t *event,
			    const yaml_char_t *anchor, const yaml_char_t *tag)
{
	struct conf_place at = place_of(&event->start_mark);

	if (anchor)
		return conf_build_error(&reader->build, at, ERR_INVALID,
					"anchors (&%.40s) are not supported", (const char *)anchor);
	if (tag)
		return conf_build_error(
			&reader->build, at, ERR_INVALID,
			"tags (!) are not supported; a text that starts with ! must be in quotes");
	return 0;
}

static int read_scalar(struct reader *reader, const yaml_event_t *event)
{
	struct conf_place at = place_of(&event->start_mark);
	const char *text = (const char *)event->data.scalar.value;
	size_t size = event->data.scalar.length;
	bool quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	int rc;

	rc = check_properties(reader, event, event->data.scalar.anchor, event->data.scalar.tag);
	if (rc < 0)
		return rc;
	if (!conf_build_wants_key(&reader->build))
		return conf_build_scalar(&reader->build, at, text, size, quoted);
	if (!size && !quoted)
		return conf_build_error(&reader->build, at, ERR_INVALID, "a key is missing here");
	return conf_build_key(&reader->build, at, text, size);
}

static int read_begin(struct reader *reader, const yaml_event_t *event, enum conf_type type)
{
	struct conf_place at = place_of(&event->start_mark);
	int rc;

	if (type == CONF_MAP)
		rc = check_properties(reader, event, event->data.mapping_start.anchor,
				      event->data.mapping_start.tag);
	else
		rc = check_properties(reader, event, event->data.sequence_start.anchor,
				      event->data.sequence_start.tag);
	if (rc < 0)
		return rc;
	if (conf_build_wants_key(&reader->build))
		return conf_build_error(&reader->build, at, ERR_INVALID,
					"a key must be a text, not a list or map");
	return conf_build_begin(&reader->build, at, type);
}

static int read_event(struct reader *reader, const yaml_event_t *event)
{
	struct conf_place at = place_of(&event->start_mark);

	switch (event->type) {
	case YAML_ALIAS_EVENT:
		return conf_build_error(&reader->build, at, ERR_INVALID,
					"aliases (*%.40s) are not supported; "
					"a text that starts with * must be in quotes",
					(const char *)event->data.alias.anchor);
	case YAML_SCALAR_EVENT: return read_scalar(reader, event);
	case YAML_SEQUENCE_START_EVENT: return read_begin(reader, event, CONF_LIST);
	case YAML_MAPPING_START_EVENT: return read_begin(reader, event, CONF_MAP);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT: return conf_build_end(&reader->build);
	case YAML_DOCUMENT_START_EVENT:
		if (event->data.document_start.tag_directives.start !=
		    event->data.document_start.tag_directives.end)
			return conf_build_error(&reader->build, at, ERR_INVALID,
						"tags (%%TAG) are not supported");
		return 0;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_END_EVENT: return 0;
	}
	return 0;
}

static int read_events(struct reader *reader)
{
	yaml_event_t event;
	bool ended;
	int rc;

	do {
		if (!yaml_parser_parse(&reader->parser, &event))
			return parser_error(reader);
		rc = read_event(reader, &event);
		ended = event.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
	} while (rc >= 0 && !ended);
	return rc;
}

static int read_yaml(struct reader *reader, const char *text, size_t size)
{
	int rc;

	reader->text = size ? text : "";
	reader->end = reader->text + size;
	CHECK(yaml_parser_initialize(&reader->parser));
	yaml_parser_set_encoding(&reader->parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&reader->parser, (const unsigned char *)reader->text, size);
	rc = read_events(reader);
	yaml_parser_delete(&reader->parser);
	return rc;
}

int conf_parse(const char *file, const char *text, size_t size, struct arena *arena,
	       struct conf ***ret_documents, size_t *ret_count, struct err *err)
{
	struct reader reader = { 0 };
	int rc;

	if (size > CONF_BYTES_MAX)
		return err_at(err, ERR_TOO_LARGE, file, 0, 0,
			      "the text has %zu bytes; the limit is %d", size, CONF_BYTES_MAX);
	if (size >= 3 &&
	    memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* byte order mark of some editors */
		text += 3;
		size -= 3;
	}
	conf_build_init(&reader.build, file, arena, err);
	rc = check_bytes(&reader.build, text, size);
	if (rc < 0)
		return rc;
	rc = conf_is_json(text, size) ? conf_read_json(&reader.build, text, size)
				      : read_yaml(&reader, text, size);
	if (rc >= 0)
		conf_build_finish(&reader.build, ret_documents, ret_count);
	conf_build_deinit(&reader.build);
	return rc;
}
