/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/nouns.h"

#include <string.h>

#include "base/parse.h"
#include "cli/jobs/jobs.h"
#include "cli/output/problem.h"

int show_noun(struct client *client, const struct output *output, const char *path,
	      const char *list, const struct column *columns, const char *name, struct err *err)
{
	json_t *rows = NULL, *row;
	bool simulated = false;
	size_t index;
	int rc = fetch_list(client, path, list, &rows, err);

	if (rc < 0)
		return rc;
	rc = output_list(output, columns, rows, name, err);
	json_array_foreach(rows, index, row) simulated = simulated || get_bool(row, "simulated");
	notice_simulated(output, simulated);
	json_decref(rows);
	return rc;
}

void cell_money(const char *amount, const char *currency, struct buf *out)
{
	const char *point = strchr(amount, '.');
	size_t size = strlen(amount), least = point ? (size_t)(point - amount) + 3 : size;

	while (size > least && amount[size - 1] == '0')
		size--;
	text_for_terminal(out, amount, size);
	if (*currency) {
		buf_addc(out, '_');
		cell_text(out, currency);
	}
}

void say_money(struct buf *out, const char *amount, const char *currency)
{
	char text[MONEY_TEXT_MAX];
	int64_t micro;

	say_text(out, parse_money(amount, &micro) ? format_money(micro, text) : amount);
	if (*currency) {
		buf_addc(out, ' ');
		say_text(out, currency);
	}
}

int change_noun(struct client *client, const char *method, const char *path, const json_t *body,
		const char *done, const char *what, struct err *err)
{
	json_t *answer = NULL;
	AUTO_BUF out = BUF_INIT;
	int rc = client_send(client, method, path, body, &answer, err);

	if (rc < 0)
		return rc;
	say_text(&out, what);
	buf_addf(&out, " %s\n", get_bool(answer, "already") ? "was so already" : done);
	output_buf(&out);
	json_decref(answer);
	return 0;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

int delete_noun(struct invocation *in, const char *path, const char *noun, struct err *err)
{
	AUTO_CLIENT client = NULL;
	int rc = client_open(in, &client, err);

	if (rc < 0)
		return rc;
	return change_noun(client, "DELETE", client_path(in->arena, path, in->args[0]), NULL,
			   "was removed", arena_printf(in->arena, "%s %s", noun, in->args[0]), err);
}

int change_each(struct invocation *in, const char *path, const json_t *body, const char *done,
		const char *noun, struct err *err)
{
	AUTO_CLIENT client = NULL;
	int rc = client_open(in, &client, err);

	for (int i = 0; i < in->arg_count && rc >= 0; i++)
		rc = change_noun(client, "POST", client_path(in->arena, path, in->args[i]), body,
				 done, arena_printf(in->arena, "%s %s", noun, in->args[i]), err);
	return rc;
}

#pragma GCC diagnostic pop
