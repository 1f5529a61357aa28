/* SPDX-License-Identifier: Apache-2.0 */
/* docs/policy.md: each value of the policy, from the table (api/policy.def). */
#include <ctype.h>
#include <string.h>

#include "api/policy_table.h"
#include "cli/table/help.h"

static const char intro[] =
	"# The policy\n\n"
	"The values by which the scheduler decides. `fairlead policy` shows them; an administrator changes them with `fairlead policy set`, or "
	"with PUT /api/v1/policy. A change is an event of the journal and counts from the next decision on: what runs is not stopped by it.\n\n"
	"    fairlead policy\n"
	"    fairlead policy set --min-runtime 1m --grace 5m\n"
	"    fairlead policy -o json\n\n"
	"What follows from them, by examples: [how-fairlead-decides.md](how-fairlead-decides.md). What a queue is promised and may hold is said "
	"of each queue (`fairlead help queues create`), what models cost with `fairlead prices`.\n\n"
	"Try a change before you make it: a scenario file has the same values below `policy:`, and `fairlead sim scenario FILE` runs "
	"it on the scheduler in virtual time. There what takes time is off unless it is said. Texts in quotes below are names of "
	"scenarios in `tests/scenarios`, with their file in brackets.\n\n"
	"A duration is a whole number with ms, s, m, h, d or w (90s, 1h30m).\n";

/* A sentence from a text without capital and full stop. */
static void add_sentence(struct buf *out, const char *text)
{
	buf_addc(out, (char)toupper((unsigned char)text[0]));
	buf_addf(out, "%s.", text + 1);
}

static void add_value(struct buf *out, const struct policy_value *value)
{
	buf_addf(out, "\n## %s\n\n", value->name);
	add_sentence(out, value->brief);
	buf_addf(out, "\n\n    fairlead policy set --%s %s\n\n", value->flag, value->standard);
	buf_addf(out, "%s; default %s, as above.", value->range, value->standard);
	if (value->scenario[0])
		buf_addf(out, " In a scenario file: `policy: {%s}`", value->scenario);
	if (value->in_scenarios[0])
		buf_addf(out, ", default there %s", value->in_scenarios);
	if (value->scenario[0])
		buf_addc(out, '.');
	buf_addf(out, "\n\n%s\n", value->more);
}

void help_policy_markdown(struct buf *out)
{
	size_t count;
	const struct policy_value *values = policy_values(&count);

	buf_addf(out, "%s%s", help_generated, intro);
	for (size_t i = 0; i < count; i++)
		add_value(out, &values[i]);
	buf_adds(
		out,
		"\n## In scenario files only\n\n"
		"`prices: {H100-80GB: 2}` says what models cost per hour. In a daemon they are set with `fairlead prices set`.\n");
}
