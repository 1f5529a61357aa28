/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What GPUs and links do when nobody says otherwise. Data sheet: the maker's figure for memory. NCCL: the library's
 * own constants of what an application gets (its topology header: GB/s per NVLink and direction, per PCIe slot, between
 * sockets). Measured: fitted to one published run, named in README.md's table, where its error is 0 by construction.
 */
#include "core/fabric/describe.h"

const struct fabric_gpu_row fabric_gpu_table[] = {
	/* name memory nvlink reduce tree pcie numa socket */
	{ "V100", 900000, 120000, 0, 0, 12000, 12000, 10000,
	  "memory: data sheet; NVLink: NCCL, 6 x 20; PCIe gen3: NCCL, 12; socket: NCCL, Skylake 10" },
	{ "A100", 1555000, 240000, 0, 60000, 24000, 24000, 22000,
	  "memory: data sheet (40 GB); NVLink: NCCL, 12 x 20; tree: measured; PCIe gen4: NCCL, 24; socket: NCCL, 22" },
	{ "A100-80GB", 2039000, 240000, 0, 60000, 24000, 24000, 22000,
	  "as A100; memory: data sheet (80 GB)" },
	{ "H100", 3350000, 370800, 274000, 0, 48000, 48000, 22000,
	  "memory: data sheet; NVLink: NCCL, 18 x 20.6; reduce: measured; PCIe gen5: twice gen4; socket: NCCL, 22" },
	{ "H100-PCIE", 2000000, 0, 0, 0, 48000, 48000, 22000,
	  "memory: data sheet; PCIe, socket: as H100; bridges are not assumed" },
	{ "H200", 4800000, 370800, 274000, 0, 48000, 48000, 22000, "as H100; memory: data sheet" },
	{ "B200", 8000000, 721800, 474000, 0, 48000, 48000, 40000,
	  "memory: data sheet; NVLink: NCCL, 18 x 40.1; reduce: measured; PCIe: as H100; socket: NCCL, 40" },
	{ "GB200", 8000000, 721800, 429000, 0, 48000, 48000, 40000,
	  "as B200; reduce: measured over 72 GPUs" },
	{ "L40S", 864000, 0, 0, 0, 24000, 24000, 22000,
	  "memory: data sheet; PCIe gen4: NCCL, 24; socket: NCCL, 22" },
	{ "L4", 300000, 0, 0, 0, 24000, 24000, 22000, "as L40S; memory: data sheet" },
	{ "A10", 600000, 0, 0, 0, 24000, 24000, 22000, "as L40S; memory: data sheet" },
	{ "A30", 933000, 0, 0, 0, 24000, 24000, 22000, "as L40S; memory: data sheet" },
	{ "A40", 696000, 0, 0, 0, 24000, 24000, 22000, "as L40S; memory: data sheet" },
	{ "T4", 320000, 0, 0, 0, 12000, 12000, 10000,
	  "memory: data sheet; PCIe gen3: NCCL, 12; socket: NCCL, Skylake 10" },
	{ "RTX4090", 1008000, 0, 0, 0, 24000, 24000, 22000, "as L40S; memory: data sheet" },
	{ "RTX5090", 1792000, 0, 0, 0, 35000, 35000, 28000,
	  "memory: data sheet; PCIe, socket: measured (no peer access)" },
	{ 0 },
};

const struct fabric_link_row fabric_nic_table[] = {
	{ "edr", 12000, "100 Gb/s InfiniBand: NCCL, 12 GB/s per 100 Gb/s" },
	{ "hdr", 24000, "200 Gb/s InfiniBand: NCCL, 24 GB/s" },
	{ "ndr", 48000, "400 Gb/s InfiniBand: NCCL's maintainers, 46 to 48 GB/s per card" },
	{ "xdr", 96000, "800 Gb/s InfiniBand: twice ndr, not measured" },
	{ "roce100", 11875, "as roce400 by line rate" },
	{ "roce200", 23750, "as roce400 by line rate" },
	{ "roce400", 47500, "400 Gb/s RoCE v2: measured, 190 GB/s over four" },
	{ "efa100", 8000, "100 Gb/s EFA: measured, 32 GB/s over four" },
	{ "tcp10", 1100, "10 Gb/s Ethernet, TCP: 88 % of the line, assumed" },
	{ "tcp25", 2750, "25 Gb/s Ethernet, TCP: as tcp10 by line rate" },
	{ 0 },
};

const struct fabric_link_row fabric_nvlink_table[] = {
	{ "none", 0, "no NVLink" },
	{ "nvlink2", 120000, "V100: 6 x 20" },
	{ "nvlink3", 240000, "A100: 12 x 20" },
	{ "nvlink4", 370800, "H100, H200: 18 x 20.6" },
	{ "nvlink5", 721800, "B200, GB200: 18 x 40.1" },
	{ 0 },
};

const struct fabric_link_row fabric_pcie_table[] = {
	{ "gen3", 12000, "16 lanes: NCCL, 12" },
	{ "gen4", 24000, "16 lanes: NCCL, 24" },
	{ "gen5", 48000, "16 lanes: twice gen4" },
	{ 0 },
};
