/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model against published runs of NCCL's all_reduce_perf, largest message. Alone, `core_fabric_published_test` prints
 * the tables; with README.md's path it checks that the README says the same.
 */
#include "core/fabric/testing.h"

static const struct run {
	const char *what;
	const char *make; /* testing.h */
	const char *put[6]; /* key, value, ... */
	const char *set;
	uint32_t gpus; /* of the host */
	uint64_t measured_mbps;
	const char *source;
	const char *fitted; /* the default that was taken from this run; NULL = none */
	bool domain; /* racks are NVLink domains */
} runs[] = {
	{ "1 host: 2 x H100 SXM", "8 ndr H100", { 0 }, "a:2", 8, 367500, "nccl#1455", NULL, false },
	{ "1 host: 4 x H100 SXM", "8 ndr H100", { 0 }, "a:4", 8, 367500, "nccl#1455", NULL, false },
	{ "1 host: 5 x H100 SXM", "8 ndr H100", { 0 }, "a:5", 8, 420000, "nccl#1455", NULL, false },
	{ "1 host: 6 x H100 SXM", "8 ndr H100", { 0 }, "a:6", 8, 440000, "nccl#1455", NULL, false },
	{ "1 host: 7 x H100 SXM", "8 ndr H100", { 0 }, "a:7", 8, 460000, "nccl#1455", NULL, false },
	{ "1 host: 8 x H100 SXM",
	  "8 ndr H100",
	  { 0 },
	  "a:8",
	  8,
	  480000,
	  "nccl#1455",
	  "reduce of H100",
	  false },
	{ "1 host: 8 x H200",
	  "8 ndr H200",
	  { 0 },
	  "a:8",
	  8,
	  475000,
	  "nccl-tests#272",
	  NULL,
	  false },
	{ "1 host: 8 x B200",
	  "8 ndr B200",
	  { 0 },
	  "a:8",
	  8,
	  830000,
	  "nccl#1807",
	  "reduce of B200",
	  false },
	{ "1 host: 8 x A100 SXM",
	  "4 efa100 A100",
	  { 0 },
	  "a:8",
	  8,
	  230800,
	  "nccl#527",
	  NULL,
	  false },
	{ "1 host: 2 x A100 joined by bridges",
	  "0 - A100",
	  { "islands", "0,1 2,3 4,5 6,7" },
	  "a:2",
	  8,
	  208000,
	  "nccl-tests#178",
	  NULL,
	  false },
	{ "1 host: 3 x A100, bridges join two",
	  "0 - A100",
	  { "islands", "0,1 2,3 4,5 6,7", "switches", "0,1 2,3 4,5 6,7" },
	  "a:3",
	  8,
	  20000,
	  "nccl-tests#178",
	  NULL,
	  false },
	{ "1 host: 4 x RTX 5090",
	  "0 - RTX5090",
	  { "numa", "0-3 4-7" },
	  "a:4",
	  8,
	  35000,
	  "nccl#1639",
	  "PCIe of RTX5090",
	  false },
	{ "1 host: 8 x RTX 5090",
	  "0 - RTX5090",
	  { "numa", "0-3 4-7" },
	  "a:8",
	  8,
	  28000,
	  "nccl#1639",
	  "socket of RTX5090",
	  false },
	{ "2 hosts: 1 x H100, 400 Gb/s each",
	  "8 ndr H100",
	  { 0 },
	  "a:1*2",
	  8,
	  50000,
	  "nccl#1357",
	  NULL,
	  false },
	{ "2 hosts: 4 x V100, 2 x EDR",
	  "2 edr V100",
	  { 0 },
	  "a:4*2",
	  4,
	  41550,
	  "nccl-tests#251",
	  NULL,
	  false },
	{ "2 hosts: 8 x A100, 2 x HDR",
	  "2 hdr A100",
	  { 0 },
	  "a:8*2",
	  8,
	  57060,
	  "nccl#837",
	  "tree of A100",
	  false },
	{ "2 hosts: 8 x A100, 4 x HDR",
	  "4 hdr A100",
	  { 0 },
	  "a:8*2",
	  8,
	  91000,
	  "nccl-tests#100",
	  NULL,
	  false },
	{ "2 hosts: 8 x A100, 4 x 100 Gb/s EFA",
	  "4 efa100 A100",
	  { 0 },
	  "a:8*2",
	  8,
	  57200,
	  "nccl#527",
	  NULL,
	  false },
	{ "3 hosts: the same",
	  "4 efa100 A100",
	  { 0 },
	  "a:8*3",
	  8,
	  31770,
	  "nccl#527",
	  "efa100",
	  false },
	{ "4 hosts: the same", "4 efa100 A100", { 0 }, "a:8*4", 8, 29630, "nccl#527", NULL, false },
	{ "3 hosts: 8 x A100, 4 x HDR",
	  "4 hdr A100",
	  { 0 },
	  "a:8*3",
	  8,
	  96450,
	  "nccl-tests#119",
	  NULL,
	  false },
	{ "2 hosts: 8 x H100, 8 x 200 Gb/s",
	  "8 hdr H100",
	  { 0 },
	  "a:8*2",
	  8,
	  338820,
	  "A3 Mega run log",
	  NULL,
	  false },
	{ "2 hosts: 8 x H100, 8 x NDR",
	  "8 ndr H100",
	  { 0 },
	  "a:8*2",
	  8,
	  468750,
	  "nccl-tests#309",
	  NULL,
	  false },
	{ "5 hosts: 8 x H100, 4 x 400 Gb/s RoCE",
	  "4 roce400 H100",
	  { 0 },
	  "a:8*5",
	  8,
	  190000,
	  "nccl#1368",
	  "roce400",
	  false },
	{ "248 hosts: 8 x H200, 8 x 400 Gb/s",
	  "8 ndr H200",
	  { 0 },
	  "a:8*248",
	  8,
	  350000,
	  "nccl-tests#283",
	  NULL,
	  false },
	{ "1 rack: 72 x GB200",
	  "4 ndr GB200",
	  { 0 },
	  "a:4*18",
	  4,
	  846820,
	  "coreweave/nccl-tests#43",
	  "reduce of GB200",
	  true },
	{ "1 rack: 2 trays of 4 x GB200",
	  "4 ndr GB200",
	  { 0 },
	  "a:4*2",
	  4,
	  811000,
	  "lixueduan.com",
	  NULL,
	  true },
	{ "3 racks: 4 x GB200, 4 x NDR, ring",
	  "4 ndr GB200",
	  { "reduce", "none" },
	  "a:4 b:4 c:4",
	  4,
	  196870,
	  "nccl#1801",
	  NULL,
	  true },
	{ "3 racks: 8 x GB200, 8 x NDR, ring",
	  "4 ndr GB200",
	  { "reduce", "none" },
	  "a:4*2 b:4*2 c:4*2",
	  4,
	  393640,
	  "nccl#1801",
	  NULL,
	  true },
};

static uint64_t predict(const struct run *run)
{
	static struct fabric f;

	f = (struct fabric){ .level_count = 1, .host_count = 1 };
	f.host[0] = make_of(run->make);
	f.host[0].gpus = (uint8_t)run->gpus;
	f.level[1].nvlink = run->domain;
	for (size_t i = 0; i + 1 < ARRAY_SIZE(run->put) && run->put[i]; i += 2)
		assert_int_equal(fabric_host_put(&f.host[0], run->put[i], run->put[i + 1], NULL),
				 0);
	assert_int_equal(fabric_check(&f, NULL), 0);
	fabric_settle(&f);
	return estimate_of(&f, run->set).mbps;
}

/* In 1/10 %, rounded to nearest. */
static int64_t error_of(const struct run *run)
{
	int64_t off = (int64_t)predict(run) - (int64_t)run->measured_mbps;
	int64_t measured = (int64_t)run->measured_mbps;

	return (off * 1000 + (off < 0 ? -measured : measured) / 2) / measured;
}

static void row_print(const struct run *run, char out[256])
{
	uint64_t measured = (run->measured_mbps + 50) / 100, predicted = (predict(run) + 50) / 100;
	int64_t error = error_of(run), size = error < 0 ? -error : error;

	snprintf(out, 256, "| %s | %llu.%llu | %llu.%llu | %s%lld.%lld %% | %s | %s |", run->what,
		 (unsigned long long)measured / 10, (unsigned long long)measured % 10,
		 (unsigned long long)predicted / 10, (unsigned long long)predicted % 10,
		 error < 0 ? "-" : "+", (long long)size / 10, (long long)size % 10, run->source,
		 run->fitted ? run->fitted : "");
}

/* "Of the 22 runs that nothing was fitted to: mean 4.5 %, largest 20.0 %." */
static void summary_print(char out[256])
{
	int64_t sum = 0, largest = 0, count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
		int64_t error = error_of(&runs[i]);

		if (runs[i].fitted)
			continue;
		error = error < 0 ? -error : error;
		sum += error;
		count++;
		if (error > largest)
			largest = error;
	}
	sum = (sum + count / 2) / count;
	snprintf(
		out, 256,
		"Of the %lld runs that nothing was fitted to: mean error %lld.%lld %%, largest %lld.%lld %%.",
		(long long)count, (long long)sum / 10, (long long)sum % 10, (long long)largest / 10,
		(long long)largest % 10);
}

static char *readme;

static void the_readme_says_what_the_model_says(void **state)
{
	char line[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
		row_print(&runs[i], line);
		if (!strstr(readme, line))
			fail_msg("not in README.md: %s", line);
	}
	summary_print(line);
	if (!strstr(readme, line))
		fail_msg("not in README.md: %s", line);
}

/* The tables of models and links stand there too. */
static void the_readme_lists_every_default(void **state)
{
	const struct fabric_link_row *tables[] = { fabric_nic_table, fabric_nvlink_table,
						   fabric_pcie_table };
	char line[512];

	(void)state;
	for (const struct fabric_gpu_row *r = fabric_gpu_table; r->name; r++) {
		snprintf(line, sizeof(line), "| %s | %u | %u | %u | %u | %u | %u | %u | %s |",
			 r->name, r->memory_mbps, r->nvlink_mbps, r->reduce_mbps, r->tree_mbps,
			 r->pcie_mbps, r->numa_mbps, r->socket_mbps, r->source);
		if (!readme)
			puts(line);
		else if (!strstr(readme, line))
			fail_msg("not in README.md: %s", line);
	}
	for (size_t t = 0; t < ARRAY_SIZE(tables); t++) {
		for (const struct fabric_link_row *r = tables[t]; r->name; r++) {
			snprintf(line, sizeof(line), "| `%s` | %u | %s |", r->name, r->mbps,
				 r->source);
			if (!readme)
				puts(line);
			else if (!strstr(readme, line))
				fail_msg("not in README.md: %s", line);
		}
	}
}

static void no_unfitted_run_is_off_by_a_quarter(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(runs); i++)
		assert_in_range(error_of(&runs[i]) + 1000, runs[i].fitted ? 940 : 750,
				runs[i].fitted ? 1060 : 1250);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_readme_says_what_the_model_says),
		cmocka_unit_test(the_readme_lists_every_default),
		cmocka_unit_test(no_unfitted_run_is_off_by_a_quarter),
	};
	char line[256];
	size_t size;
	FILE *in;

	if (argc < 2) {
		for (size_t i = 0; i < ARRAY_SIZE(runs); i++) {
			row_print(&runs[i], line);
			puts(line);
		}
		summary_print(line);
		puts(line);
		the_readme_lists_every_default(NULL);
		return 0;
	}
	in = fopen(argv[1], "re");
	if (!in)
		return 2;
	readme = calloc(1, 1 << 20);
	if (!readme)
		return 2;
	size = fread(readme, 1, (1 << 20) - 1, in);
	fclose(in);
	size = (size_t)cmocka_run_group_tests(tests, NULL, NULL) + (size == 0);
	free(readme);
	return (int)size;
}
