/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "base/check.h"
#include "base/parse.h"
#include "core/fabric/describe.h"

static bool same(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static bool word_ends(char c)
{
	return !((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'));
}

int fabric_host_default(struct fabric_host *host, const char *gpu_model)
{
	static const struct fabric_gpu_row unknown = {
		"", 300000, 0, 0, 0, 12000, 12000, 10000, ""
	};
	const struct fabric_gpu_row *row = &unknown;
	size_t best = 0;

	for (const struct fabric_gpu_row *r = fabric_gpu_table; r->name; r++) {
		size_t size = strlen(r->name);

		if (size > best && strncmp(gpu_model, r->name, size) == 0 &&
		    word_ends(gpu_model[size])) {
			row = r;
			best = size;
		}
	}
	*host = (struct fabric_host){
		.gpus = 8,
		.memory_mbps = row->memory_mbps,
		.nvlink_mbps = row->nvlink_mbps,
		.reduce_mbps = row->reduce_mbps,
		.tree_mbps = row->tree_mbps,
		.pcie_mbps = row->pcie_mbps,
		.numa_mbps = row->numa_mbps,
		.socket_mbps = row->socket_mbps,
	};
	return best ? 0 : FABRIC_UNKNOWN;
}

/* Digits with at most three decimals, as thousandths; the rest of the text in *ret_rest. */
static bool milli_read(const char *text, uint64_t *ret, const char **ret_rest)
{
	uint64_t value = 0;
	int decimals = 0;

	if (*text < '0' || *text > '9')
		return false;
	for (; *text >= '0' && *text <= '9'; text++) {
		if (value > UINT64_MAX / 100000)
			return false;
		value = value * 10 + (uint64_t)(*text - '0');
	}
	if (*text == '.') {
		for (text++; *text >= '0' && *text <= '9'; text++) {
			if (++decimals > 3)
				return false;
			value = value * 10 + (uint64_t)(*text - '0');
		}
		if (decimals == 0)
			return false;
	}
	for (; decimals < 3; decimals++)
		value *= 10;
	*ret = value;
	*ret_rest = text;
	return true;
}

int fabric_parse_rate(const char *text, uint64_t *ret_mbps, struct err *err)
{
	/* thousandths of the unit x times / over = MB/s; of bits 24/25 arrive */
	static const struct {
		const char *unit;
		uint64_t times, over;
	} units[] = {
		{ "MB/s", 1, 1000 },    { "GB/s", 1, 1 },    { "TB/s", 1000, 1 },
		{ "Mb/s", 24, 200000 }, { "Gb/s", 24, 200 }, { "Tb/s", 24000, 200 },
	};
	const char *rest;
	uint64_t milli;

	if (milli_read(text, &milli, &rest) && milli <= FABRIC_MBPS_MAX * 1000 * 9) {
		for (size_t u = 0; u < ARRAY_SIZE(units); u++) {
			uint64_t mbps = milli * units[u].times / units[u].over;

			if (!same(rest, units[u].unit))
				continue;
			if (mbps == 0 || mbps > FABRIC_MBPS_MAX)
				return err_set(
					err, ERR_INVALID,
					"rate \"%s\": between 1MB/s and 1000TB/s is possible",
					text);
			*ret_mbps = mbps;
			return 0;
		}
	}
	return err_set(err, ERR_INVALID,
		       "rate \"%s\": expected a number and MB/s, GB/s, TB/s, Mb/s, Gb/s or Tb/s, "
		       "such as 400Gb/s",
		       text);
}

/* One number of a group; moves on. */
static bool index_read(const char **text, uint32_t gpus, uint32_t *ret)
{
	uint32_t value = 0;
	const char *start = *text;

	while (**text >= '0' && **text <= '9' && value < 1000)
		value = value * 10 + (uint32_t)(*(*text)++ - '0');
	*ret = value;
	return *text > start && value < gpus;
}

static bool group_read(const char **text, uint32_t gpus, uint32_t *ret_mask)
{
	uint32_t first, last;

	*ret_mask = 0;
	for (;; (*text)++) {
		if (!index_read(text, gpus, &first))
			return false;
		last = first;
		if (**text == '-') {
			(*text)++;
			if (!index_read(text, gpus, &last) || last < first)
				return false;
		}
		for (uint32_t i = first; i <= last; i++)
			*ret_mask |= UINT32_C(1) << i;
		if (**text != ',')
			break;
	}
	return **text == '\0' || **text == ' ';
}

int fabric_parse_groups(const char *text, uint32_t gpus, uint32_t ret_groups[FABRIC_GROUPS_MAX],
			struct err *err)
{
	uint32_t groups[FABRIC_GROUPS_MAX] = { 0 }, seen = 0, count = 0;
	const char *at = text;

	if (same(text, "none")) {
		groups[0] = 1; /* GPUs that no group names are alone, and so is this one */
		at += 4;
	} else if (same(text, "all")) {
		at += 3;
	}
	while (*at) {
		if (count == FABRIC_GROUPS_MAX)
			return err_set(err, ERR_INVALID, "groups \"%s\": at most %d are possible",
				       text, FABRIC_GROUPS_MAX);
		if (!group_read(&at, gpus, &groups[count]))
			return err_set(
				err, ERR_INVALID,
				"groups \"%s\": expected GPU numbers below %u, such as \"0-3 4-7\", or all, or none",
				text, gpus);
		if (groups[count] & seen)
			return err_set(err, ERR_INVALID, "groups \"%s\": GPU %d is in two groups",
				       text, __builtin_ctz(groups[count] & seen));
		seen |= groups[count++];
		while (*at == ' ')
			at++;
	}
	memcpy(ret_groups, groups, sizeof(groups));
	return 0;
}

/* A name of the table, or a rate. */
static int link_read(const struct fabric_link_row *table, const char *what, const char *value,
		     uint64_t *ret_mbps, struct err *err)
{
	const char *names[16];
	const char *hint;
	size_t count = 0;

	for (; table[count].name; count++) {
		CHECK(count < ARRAY_SIZE(names));
		names[count] = table[count].name;
		if (same(value, table[count].name)) {
			*ret_mbps = table[count].mbps;
			return 0;
		}
	}
	if (*value >= '0' && *value <= '9')
		return fabric_parse_rate(value, ret_mbps, err);
	hint = spelling_hint(value, names, count);
	return err_set(err, ERR_INVALID,
		       "%s \"%s\" is not known%s%s%s; a rate such as 50GB/s will do too", what,
		       value, hint ? "; did you mean \"" : "", hint ? hint : "", hint ? "\"" : "");
}

static int number_read(const char *what, const char *value, int64_t min, int64_t max, uint8_t *ret,
		       struct err *err)
{
	int64_t number;

	if (parse_int(value, min, max, &number, err))
		return err_prefix(err, "%s", what);
	*ret = (uint8_t)number;
	return 0;
}

static int key_unknown(const char *what, const char *key, const char *const *keys, size_t count,
		       struct err *err)
{
	const char *hint = spelling_hint(key, keys, count);

	return err_set(err, ERR_INVALID, "a fabric's %s has no \"%s\"%s%s%s", what, key,
		       hint ? "; did you mean \"" : "", hint ? hint : "", hint ? "\"" : "");
}

enum host_key {
	HOST_GPUS,
	HOST_ISLANDS = FABRIC_KEY_ISLANDS,
	HOST_SWITCHES = FABRIC_KEY_SWITCHES,
	HOST_NUMA = FABRIC_KEY_NUMA,
	HOST_NVLINK = FABRIC_KEY_NVLINK,
	HOST_REDUCE = FABRIC_KEY_REDUCE,
	HOST_TREE = FABRIC_KEY_TREE,
	HOST_PCIE = FABRIC_KEY_PCIE,
	HOST_BETWEEN_SWITCHES = FABRIC_KEY_BETWEEN_SWITCHES,
	HOST_BETWEEN_NUMA = FABRIC_KEY_BETWEEN_NUMA,
	HOST_NICS = FABRIC_KEY_NICS,
	HOST_NIC = FABRIC_KEY_NIC,
	HOST_KEYS = FABRIC_KEYS
};
static const char *const host_keys[HOST_KEYS] = {
	[HOST_GPUS] = "gpus",
	[HOST_ISLANDS] = "islands",
	[HOST_SWITCHES] = "switches",
	[HOST_NUMA] = "numa",
	[HOST_NVLINK] = "nvlink",
	[HOST_REDUCE] = "reduce",
	[HOST_TREE] = "tree",
	[HOST_PCIE] = "pcie",
	[HOST_BETWEEN_SWITCHES] = "between_switches",
	[HOST_BETWEEN_NUMA] = "between_numa",
	[HOST_NICS] = "nics",
	[HOST_NIC] = "nic",
};

static int rate_or_none(const char *value, uint64_t *ret_mbps, struct err *err)
{
	if (!same(value, "none"))
		return fabric_parse_rate(value, ret_mbps, err);
	*ret_mbps = 0;
	return 0;
}

int fabric_host_key(const char *key)
{
	for (int k = 0; k < HOST_KEYS; k++)
		if (same(key, host_keys[k]))
			return k;
	return -1;
}

int fabric_host_put(struct fabric_host *host, const char *key, const char *value, struct err *err)
{
	int k = fabric_host_key(key);

	const enum host_key which = k < 0 ? HOST_KEYS : (enum host_key)k;

	switch (which) {
	case HOST_GPUS: return number_read("gpus", value, 1, NODE_GPUS_MAX, &host->gpus, err);
	case HOST_NICS: return number_read("nics", value, 0, FABRIC_NICS_MAX, &host->nics, err);
	case HOST_ISLANDS: return fabric_parse_groups(value, host->gpus, host->island, err);
	case HOST_SWITCHES: return fabric_parse_groups(value, host->gpus, host->pcie_switch, err);
	case HOST_NUMA: return fabric_parse_groups(value, host->gpus, host->numa, err);
	case HOST_NVLINK:
		if (link_read(fabric_nvlink_table, "NVLink", value, &host->nvlink_mbps, err))
			return -(int)ERR_INVALID;
		if (host->nvlink_mbps == 0)
			host->reduce_mbps = 0;
		return 0;
	case HOST_NIC:
		return link_read(fabric_nic_table, "network card", value, &host->nic_mbps, err);
	case HOST_PCIE: return link_read(fabric_pcie_table, "PCIe", value, &host->pcie_mbps, err);
	case HOST_BETWEEN_SWITCHES: return fabric_parse_rate(value, &host->numa_mbps, err);
	case HOST_BETWEEN_NUMA: return fabric_parse_rate(value, &host->socket_mbps, err);
	case HOST_REDUCE: return rate_or_none(value, &host->reduce_mbps, err);
	case HOST_TREE: return rate_or_none(value, &host->tree_mbps, err);
	case HOST_KEYS: break;
	}
	return key_unknown("host", key, host_keys, HOST_KEYS, err);
}

static int bool_read(const char *what, const char *value, bool *ret, struct err *err)
{
	if (!same(value, "true") && !same(value, "false"))
		return err_set(err, ERR_INVALID, "%s \"%s\": expected true or false", what, value);
	*ret = same(value, "true");
	return 0;
}

/* "2", "2:1", "1.5:1" */
static int over_read(const char *value, uint32_t *ret_milli, struct err *err)
{
	const char *rest;
	uint64_t milli;

	if (!milli_read(value, &milli, &rest) || (*rest && !same(rest, ":1")) || milli < 1000 ||
	    milli > FABRIC_OVER_MAX)
		return err_set(err, ERR_INVALID,
			       "oversubscription \"%s\": expected 1:1 to 1000:1, such as 2:1",
			       value);
	*ret_milli = (uint32_t)milli;
	return 0;
}

static int latency_read(const char *value, uint32_t *ret_ns, struct err *err)
{
	const char *rest;
	uint64_t milli, ns = 0;

	if (milli_read(value, &milli, &rest) && milli <= UINT64_C(1000) * FABRIC_LATENCY_MAX) {
		if (same(rest, "ns"))
			ns = milli / 1000;
		else if (same(rest, "us"))
			ns = milli;
		else if (same(rest, "ms"))
			ns = milli * 1000;
	}
	if (ns == 0 || ns > FABRIC_LATENCY_MAX)
		return err_set(err, ERR_INVALID,
			       "latency \"%s\": expected 1ns to 1000ms, such as 5us", value);
	*ret_ns = (uint32_t)ns;
	return 0;
}

int fabric_level_put(struct fabric_level *level, const char *key, const char *value,
		     struct err *err)
{
	static const char *const keys[] = { "nvlink", "reduces", "oversubscription", "latency",
					    "host" };

	if (same(key, "nvlink"))
		return bool_read(key, value, &level->nvlink, err);
	if (same(key, "reduces"))
		return bool_read(key, value, &level->reduces, err);
	if (same(key, "oversubscription"))
		return over_read(value, &level->over_milli, err);
	if (same(key, "latency"))
		return latency_read(value, &level->latency_ns, err);
	if (same(key, "host"))
		return rate_or_none(value, &level->host_mbps, err);
	return key_unknown("level", key, keys, ARRAY_SIZE(keys), err);
}

int slowdown_parse(const char *text, int64_t *ret_permille, struct err *err)
{
	char number[16] = "";
	const char *end = memchr(text, '%', strlen(text)), *point;
	int64_t whole, part = 0;
	size_t size = end ? (size_t)(end - text) : 0;

	if (end && !end[1] && size && size < sizeof(number)) {
		memcpy(number, text, size);
		point = memchr(number, '.', strlen(number));
		if (point) {
			size_t at = (size_t)(point - number);

			if (size - at != 2 || number[at + 1] < '0' || number[at + 1] > '9')
				size = 0;
			else
				part = number[at + 1] - '0';
			number[at] = '\0';
		}
		if (size && parse_int(number, 0, 99900, &whole, NULL) == 0 &&
		    whole * 10 + part > 0) {
			*ret_permille = whole * 10 + part;
			return 0;
		}
	}
	return err_set(
		err, ERR_INVALID,
		"max_slowdown \"%.31s\": expected how much longer a step may take, 0.1%% to 99900%%, such as 20%%",
		text);
}
