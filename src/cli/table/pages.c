/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Help as pages: the topics, docs/commands.md, docs/job-file.md, docs/exit-codes.md and the man
 * pages (docs/policy.md: policy_page.c), all from the tables (commands, fields of the job file, errors). tests/cli compares the
 * files in docs/ with what is made here.
 */
#include <string.h>

#include "api/jobfile/jobfile.h"
#include "base/check.h"
#include "cli/table/help.h"

const char help_generated[] =
	"<!-- Made by `fairlead help --markdown`; change the tables in src/, not this file. -->\n";

/* job file */

static const char job_file_intro[] =
	"A job file says what to run and what it needs. The smallest one has one line:\n\n"
	"    command: python3 train.py\n\n"
	"A larger one:\n\n"
	"    name: resnet-large\n"
	"    queue: vision\n"
	"    tasks: 4                       # four processes, started together or not at all\n"
	"    gpus: {count: 2, model: H100-80GB}\n"
	"    command: [python3, train.py, --epochs, \"90\"]\n"
	"    env: {DATA: /data/imagenet}\n"
	"    checkpoint: {how: signal, every: 10m, grace: 2m}\n"
	"    limit: 12h\n\n"
	"`fairlead submit FILE` submits it, `fairlead submit --dry-run FILE` checks it and says what would happen. The same form is taken "
	"as JSON by POST /api/v1/jobs, and each flag of `fairlead run` is one of these fields.\n\n"
	"A field that is not known is an error with file, line and column, and so is one that nothing acts on yet. One file holds one job. "
	"YAML's anchors, aliases and tags are refused. A file has 4 MiB at most.\n\n"
	"Units: a duration is a whole number with ms, s, m, h, d or w, or several behind each other (90s, 1h30m, 7d), up to 10 years, or hours, minutes and seconds as a clock shows them (01:30:00, with "
	"days 2-01:30:00); a size is a whole number with MiB, GiB or TiB (512MiB, 80GiB, 2TiB), also KiB, MB or GB; Mi, Gi and M, G are short for "
	"MiB and GiB, so 64G is 64GiB. A number without its unit is refused.\n";

static void job_file_text(struct buf *out)
{
	const struct jobfile_field *fields;
	size_t count;

	for (const char *at = job_file_intro; *at;) { /* paragraphs are wrapped, examples kept */
		size_t length = strcspn(at, "\n");
		char line[1024];

		CHECK(length < sizeof(line));
		memcpy(line, at, length);
		line[length] = '\0';
		if (at[0] == ' ' || !length)
			buf_addf(out, "%s\n", line);
		else
			help_wrap(out, line, 0, 96);
		at += length + (at[length] == '\n');
	}
	fields = jobfile_fields(&count);
	for (size_t i = 0; i < count; i++) {
		buf_addf(out, "\n%s: %s", fields[i].name, fields[i].type);
		if (strcmp(fields[i].range, "-") != 0)
			buf_addf(out, "; %s", fields[i].range);
		if (strcmp(fields[i].standard, "none") != 0)
			buf_addf(out, "; default: %s", fields[i].standard);
		buf_addc(out, '\n');
		help_wrap(out, fields[i].doc, 4, 96);
		for (const char *at = fields[i].example; *at;) {
			size_t length = strcspn(at, "\n");

			buf_addf(out, "        %.*s\n", (int)length, at);
			at += length + (at[length] == '\n');
		}
	}
}

/* A cell of a Markdown table: bars and line ends would end it. */
static void add_cell(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '|')
			buf_adds(out, "\\|");
		else if (*text == '\n')
			buf_adds(out, "<br>");
		else
			buf_addc(out, *text);
	}
}

static void add_code_cell(struct buf *out, const char *text)
{
	buf_adds(out, "<code>");
	for (; *text; text++) {
		if (*text == '\n')
			buf_adds(out, "<br>");
		else if (*text == ' ' && text[-1] == ' ')
			buf_adds(out, "&nbsp;");
		else if (*text == '<')
			buf_adds(out, "&lt;");
		else if (*text == '|')
			buf_adds(out, "&#124;");
		else
			buf_addc(out, *text);
	}
	buf_adds(out, "</code>");
}

static void job_file_markdown(struct buf *out)
{
	const struct jobfile_field *fields;
	size_t count;

	buf_addf(
		out,
		"%s# The job file\n\n%s\n| field | takes | range | default | what it is |\n|---|---|---|---|---|\n",
		help_generated, job_file_intro);
	fields = jobfile_fields(&count);
	for (size_t i = 0; i < count; i++) {
		buf_addf(out, "| `%s` | ", fields[i].name);
		add_cell(out, fields[i].type);
		buf_adds(out, " | ");
		add_cell(out, strcmp(fields[i].range, "-") == 0 ? "" : fields[i].range);
		buf_adds(out, " | ");
		add_cell(out, fields[i].standard);
		buf_adds(out, " | ");
		add_cell(out, fields[i].doc);
		buf_adds(out, " Example: ");
		add_code_cell(out, fields[i].example);
		buf_adds(out, " |\n");
	}
	buf_adds(
		out,
		"\nWhat a task finds in its environment is in [task-environment.md](task-environment.md). "
		"The names above live for ever: [decisions/0004](decisions/0004-job-file-and-exit-codes.md).\n");
}

/* exit codes */

static const struct {
	const char *name, *text;
	int http, exit;
} errors[] = {
#define E(NAME, name, text, http, exit) { name, text, http, exit },
#include "base/errors.def"
#undef E
};

static const char exit_intro[] =
	"0 says that all went well, 1 that the job failed, was cancelled or ran into its limit, or that a dry run found that it can't start on this "
	"cluster. 130 says that Ctrl-C ended the waiting; the job goes on. With `fairlead run --wait` the exit status "
	"is the job's own: the code of the first task that failed, or 128 and the signal's number. 130 says that Ctrl-C ended that waiting, and "
	"the job goes on. Everything else is about the command itself:\n";

static void exit_codes_text(struct buf *out)
{
	help_wrap(out, exit_intro, 0, 96);
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		buf_addf(out, "  %3d  %-16s %s\n", errors[i].exit, errors[i].name, errors[i].text);
}

static void exit_codes_markdown(struct buf *out)
{
	buf_addf(
		out,
		"%s# Exit codes\n\n%s\n| exit status | name in JSON | HTTP status | meaning |\n|---|---|---|---|\n",
		help_generated, exit_intro);
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		buf_addf(out, "| %d | `%s` | %d | %s |\n", errors[i].exit, errors[i].name,
			 errors[i].http, errors[i].text);
	buf_adds(
		out,
		"\nErrors of the API carry the name: `{\"error\": {\"code\": \"quota\", \"message\": \"...\"}}`, and file, line and column when "
		"they are about a place in a job file. Names and numbers never change: "
		"[decisions/0004](decisions/0004-job-file-and-exit-codes.md).\n");
}

/* environment */

static const char environment_intro[] =
	"FAIRLEAD_DATA: the data folder of the daemon to speak to. Without it: /var/lib/fairlead for root, else fairlead in XDG_STATE_HOME or "
	"~/.local/state; when no daemon runs there but one of the machine's does, that one.\n\n"
	"FAIRLEAD_SERVER, FAIRLEAD_TOKEN: a daemon over TCP, http://HOST:PORT, and the token for it. Flags come before variables.\n\n"
	"FAIRLEAD_GIT: where it is \"no\", run and submit don't note the state of git.\n\n"
	"NO_COLOR, TERM: no colours when the first is set to anything or the second is dumb. Colour is never the only sign.\n\n"
	"TZ: dates are shown in local time.\n\n"
	"Inside a job Fairlead sets many more; see docs/task-environment.md.\n";

static void environment_text(struct buf *out)
{
	help_wrap(out, environment_intro, 0, 96);
}

const struct topic topics[] = {
	{ "job-file", "all fields of a job file", job_file_text, job_file_markdown },
	{ "exit-codes", "what exit statuses and error names mean", exit_codes_text,
	  exit_codes_markdown },
	{ "environment", "variables that the command looks at", environment_text, NULL },
};
const size_t topic_count = ARRAY_SIZE(topics);

/* docs/commands.md */

static void markdown_example(struct buf *out, const char *line, size_t length, const char *what,
			     size_t what_length)
{
	buf_addf(out, "    %.*s", (int)length, line);
	if (what_length)
		buf_addf(out, "    # %.*s", (int)what_length, what);
	buf_addc(out, '\n');
}

static void markdown_flags(const struct command *command, struct buf *out)
{
	const struct flag *list[FLAGS_MAX];
	size_t count = command_flags(command, list);
	AUTO_BUF text = BUF_INIT;

	if (count < 2) /* only --help */
		return;
	buf_adds(out, "\n| flag | meaning |\n|---|---|\n");
	for (size_t i = 0; i + 1 < count; i++) {
		buf_clear(&text);
		help_flag(list[i], &text);
		buf_adds(out, "| ");
		add_code_cell(out, text.data);
		buf_adds(out, " | ");
		add_cell(out, list[i]->doc);
		buf_adds(out, list[i]->repeat ? "; may be repeated |\n" : " |\n");
	}
}

void help_commands_markdown(struct buf *out)
{
	AUTO_BUF text = BUF_INIT;

	buf_addf(
		out,
		"%s# Commands\n\nEvery command has `--help`. Exit statuses are in [exit-codes.md](exit-codes.md), "
		"the form of job files in [job-file.md](job-file.md).\n",
		help_generated);
	for (size_t i = 0; i < command_count; i++) {
		const struct command *command = commands[i];

		if (command->hidden)
			continue;
		buf_clear(&text);
		help_synopsis(command, &text);
		buf_addf(out, "\n## fairlead %s\n\n%s.\n\n    %s\n", command->name,
			 command->summary, text.data);
		if (command->about)
			buf_addf(out, "\n%s\n", command->about);
		markdown_flags(command, out);
		if (command->examples) {
			buf_adds(out, "\nExamples:\n\n");
			help_examples(command, markdown_example, out);
		}
		if (command->route)
			buf_addf(out, "\nCalls `%s`.\n", command->route);
	}
}

/* man pages */

/*
 * Text for roff: a leading dot or quote is a request, a backslash an escape, hyphens must stay
 * hyphens.
 */
static void roff_text(struct buf *out, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		bool at_start = !out->size || out->data[out->size - 1] == '\n';

		if (text[i] == '\\')
			buf_adds(out, "\\e");
		else if (text[i] == '-')
			buf_adds(out, "\\-");
		else if (at_start && (text[i] == '.' || text[i] == '\''))
			buf_addf(out, "\\&%c", text[i]);
		else
			buf_addc(out, text[i]);
	}
}

static void roff(struct buf *out, const char *text)
{
	roff_text(out, text, strlen(text));
}

static void roff_example(struct buf *out, const char *line, size_t length, const char *what,
			 size_t what_length)
{
	if (what_length) {
		buf_adds(out, ".PP\n");
		roff_text(out, what, what_length);
		buf_adds(out, ":\n");
	}
	buf_adds(out, ".PP\n.nf\n    ");
	roff_text(out, line, length);
	buf_adds(out, "\n.fi\n");
}

static void roff_paragraphs(struct buf *out, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "\n");

		if (length) {
			buf_adds(out, ".PP\n");
			roff_text(out, text, length);
			buf_addc(out, '\n');
		}
		text += length + (text[length] == '\n');
	}
}

static void roff_body(const struct command *command, struct buf *out)
{
	const struct flag *list[FLAGS_MAX];
	size_t count = command_flags(command, list);
	AUTO_BUF text = BUF_INIT;

	if (command->about)
		roff_paragraphs(out, command->about);
	buf_adds(out, ".SS Flags\n");
	for (size_t i = 0; i < count; i++) {
		buf_clear(&text);
		help_flag(list[i], &text);
		buf_adds(out, ".TP\n.B ");
		roff(out, text.data);
		buf_addc(out, '\n');
		roff(out, list[i]->doc);
		buf_adds(out, list[i]->repeat ? "; may be repeated.\n" : ".\n");
	}
	if (command->examples) {
		buf_adds(out, ".SS Examples\n");
		help_examples(command, roff_example, out);
	}
}

static void roff_head(struct buf *out, const char *name, const char *summary)
{
	buf_adds(out, ".\\\" Made from Fairlead's table of commands.\n.TH \"");
	for (const char *p = name; *p; p++)
		buf_addc(out, *p == ' '                ? '-'
			      : *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A')
						       : *p);
	buf_adds(out, "\" 1 \"\" \"Fairlead " FAIRLEAD_VERSION "\" \"Fairlead\"\n.SH NAME\n");
	roff(out, name);
	buf_adds(out, " \\- ");
	roff(out, summary);
	buf_addc(out, '\n');
}

static void roff_synopsis(const struct command *command, struct buf *out)
{
	AUTO_BUF text = BUF_INIT;

	help_synopsis(command, &text);
	buf_adds(out, ".B ");
	roff(out, text.data);
	buf_adds(out, "\n.br\n");
}

static void man_overview(struct buf *out)
{
	AUTO_BUF text = BUF_INIT;

	roff_head(out, "fairlead", "share GPUs between people and teams");
	buf_adds(out, ".SH SYNOPSIS\n.B fairlead\nCOMMAND [flags] [arguments]\n.SH DESCRIPTION\n"
		      "Each command has a page of its own.\n.SH COMMANDS\n");
	for (size_t i = 0; i < command_count; i++) {
		if (commands[i]->hidden || strchr(commands[i]->name, ' '))
			continue;
		buf_addf(out, ".TP\n.BR fairlead\\-%s (1)\n", commands[i]->name);
		roff(out, commands[i]->summary);
		buf_adds(out, ".\n");
	}
	buf_adds(out, ".SH EXIT STATUS\n");
	roff_paragraphs(out, exit_intro);
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
		buf_addf(out, ".TP\n.B %d\n", errors[i].exit);
		roff(out, errors[i].text);
		buf_addf(out, " (%s).\n", errors[i].name);
	}
	buf_adds(out, ".SH ENVIRONMENT\n");
	roff_paragraphs(out, environment_intro);
	buf_adds(out, ".SH JOB FILE\n.nf\n");
	job_file_text(&text);
	roff(out, text.data);
	buf_adds(out, ".fi\n");
}

void help_man(const struct command *command, struct buf *out)
{
	char name[64];

	if (!command) {
		man_overview(out);
		return;
	}
	snprintf(name, sizeof(name), "fairlead-%s", command->name);
	roff_head(out, name, command->summary);
	buf_adds(out, ".SH SYNOPSIS\n");
	roff_synopsis(command, out);
	for (size_t i = 0; i < command_count; i++)
		if (command_is_sub_of(commands[i], command->name))
			roff_synopsis(commands[i], out);
	buf_adds(out, ".SH DESCRIPTION\n");
	roff(out, command->summary);
	buf_adds(out, ".\n");
	roff_body(command, out);
	for (size_t i = 0; i < command_count; i++) {
		if (!command_is_sub_of(commands[i], command->name) || commands[i]->hidden)
			continue;
		buf_adds(out, ".SH ");
		for (const char *p = commands[i]->name; *p; p++)
			buf_addc(out, *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p);
		buf_addc(out, '\n');
		roff(out, commands[i]->summary);
		buf_adds(out, ".\n");
		roff_body(commands[i], out);
	}
	buf_adds(out, ".SH SEE ALSO\n.BR fairlead (1)\n");
}
