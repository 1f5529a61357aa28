/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/report.h"

#include <string.h>

#include "base/buf.h"
#include "base/parse.h"

/* One line of TAP: a name must not look like a directive or break the line. */
static void tap_line(struct report *report, bool ok, const char *name)
{
	AUTO_BUF text = BUF_INIT;

	text_for_terminal(&text, name, strlen(name));
	for (char *hash = text.data; hash && (hash = strchr(hash, '#')); hash++)
		*hash = '_';
	fprintf(report->out, "%sok %u - %s\n", ok ? "" : "not ", report->count, buf_text(&text));
}

static void tap_result(struct report *report, const struct scenario *s,
		       const struct scenario_result *r)
{
	if (r->mismatch_count == 0 && r->problem_count == 0)
		return;
	fprintf(report->out, "#   %s:%d\n", s->file, s->line);
	if (r->mismatch_count)
		fprintf(report->out, "#   %-8s %-32s %-24s %s\n", "at", "what", "expected",
			"actual");
	for (uint32_t i = 0; i < r->mismatch_count; i++) {
		const struct mismatch *m = &r->mismatches[i];

		fprintf(report->out, "#   %-8s %-32s %-24s %s\n", m->when, m->what, m->expected,
			m->actual);
		if (*m->why && strcmp(m->why, m->actual) != 0)
			fprintf(report->out, "#   %-8s   (line %d) %s\n", "", m->line, m->why);
	}
	for (uint32_t i = 0; i < r->problem_count; i++)
		fprintf(report->out, "#   must never be: %s\n", r->problems[i]);
}

/* JSON. */

static void json_text(struct buf *out, const char *key, const char *text)
{
	buf_add_json(out, key, strlen(key));
	buf_addc(out, ':');
	buf_add_json(out, text, strlen(text));
}

static void json_result(struct report *report, const struct scenario *s,
			const struct scenario_result *r, bool ok)
{
	AUTO_BUF out = BUF_INIT;

	buf_adds(&out, report->count > 1 ? ",\n{" : "\n{");
	json_text(&out, "name", s->name);
	buf_addc(&out, ',');
	json_text(&out, "file", s->file);
	buf_addf(
		&out,
		",\"line\":%d,\"result\":\"%s\",\"events\":%llu,\"turns\":%llu,\"trail\":\"%016llx\",\"end_ms\":%lld,\"mismatches\":[",
		s->line, ok ? "passed" : "failed", (unsigned long long)r->events,
		(unsigned long long)r->turns, (unsigned long long)r->trail, (long long)r->end_ms);
	for (uint32_t i = 0; i < r->mismatch_count; i++) {
		const struct mismatch *m = &r->mismatches[i];
		const char *const fields[][2] = { { "at", m->when },
						  { "what", m->what },
						  { "expected", m->expected },
						  { "actual", m->actual },
						  { "why", m->why } };

		buf_addf(&out, "%s{\"line\":%d", i ? "," : "", m->line);
		for (size_t k = 0; k < ARRAY_SIZE(fields); k++) {
			buf_addc(&out, ',');
			json_text(&out, fields[k][0], fields[k][1]);
		}
		buf_addc(&out, '}');
	}
	buf_adds(&out, "],\"problems\":[");
	for (uint32_t i = 0; i < r->problem_count; i++) {
		buf_adds(&out, i ? "," : "");
		buf_add_json(&out, r->problems[i], strlen(r->problems[i]));
	}
	buf_adds(&out, "]}");
	fputs(buf_text(&out), report->out);
}

static void json_refused(struct report *report, const char *name, const struct err *err)
{
	AUTO_BUF out = BUF_INIT;

	buf_adds(&out, report->count > 1 ? ",\n{" : "\n{");
	json_text(&out, "name", name);
	buf_addc(&out, ',');
	json_text(&out, "file", err->file);
	buf_addf(&out, ",\"line\":%d,\"column\":%d,\"result\":\"refused\",", err->line,
		 err->column);
	json_text(&out, "code", err_code_name(err->code));
	buf_addc(&out, ',');
	json_text(&out, "error", err->text);
	buf_addc(&out, '}');
	fputs(buf_text(&out), report->out);
}

/* Both. */

void report_begin(struct report *report, enum report_form form, FILE *out, size_t planned)
{
	*report = (struct report){ .out = out, .form = form };
	if (form == REPORT_TAP)
		fprintf(out, "TAP version 13\n1..%zu\n", planned);
	else
		fputs("{\"scenarios\":[", out);
}

void report_result(struct report *report, const struct scenario *scenario,
		   const struct scenario_result *result)
{
	bool ok = result->mismatch_count == 0 && result->problem_count == 0;

	report->count++;
	report->passed += ok;
	report->failed += !ok;
	if (report->form == REPORT_JSON) {
		json_result(report, scenario, result, ok);
		return;
	}
	tap_line(report, ok, scenario->name);
	tap_result(report, scenario, result);
}

void report_refused(struct report *report, const char *name, const struct err *err)
{
	report->count++;
	report->refused++;
	if (report->form == REPORT_JSON) {
		json_refused(report, name, err);
		return;
	}
	tap_line(report, false, name);
	fprintf(report->out, "#   %s:%d:%d: %s\n", err->file, err->line, err->column, err->text);
}

void report_end(struct report *report)
{
	if (report->form == REPORT_JSON)
		fprintf(report->out, "],\n\"passed\":%u,\"failed\":%u,\"refused\":%u}\n",
			report->passed, report->failed, report->refused);
	else if (report->failed || report->refused)
		fprintf(report->out, "# %u passed, %u failed, %u refused\n", report->passed,
			report->failed, report->refused);
	fflush(report->out);
}
