/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of QEMU's plugin interface that is used here, written from its
 * documentation, because Debian packages QEMU without this header.
 *
 * FT_API is the version that the plugin declares. A QEMU accepts only versions from
 * its own minimum to its current one. 7.2: 0 to 1. 10.0: 2 to 4. 11.1: 7.
 */
#ifndef FT_PLUGIN_API_H
#define FT_PLUGIN_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef FT_API
#error "build with -DFT_API=N, the plugin API version of the QEMU in use"
#endif

#if FT_API < 1 || FT_API > 7
#error "plugin API versions 1 to 7 are known"
#endif

/* Counters per vCPU that generated code adds to, and reading registers. */
#define FT_HAS_SCOREBOARD	(FT_API >= 2)
#define FT_HAS_REGISTERS	(FT_API >= 2)
/* A page-table walk on request. */
#define FT_HAS_TRANSLATE	(FT_API >= 5)
/* A call for every exception and interrupt that is taken. */
#define FT_HAS_DISCON		(FT_API >= 6)

#define FT_EXPORT __attribute__((visibility("default")))

/*
 * Functions that not every QEMU has. They are weak, so that loading a plugin of
 * another version does not fail with a missing symbol before QEMU can report
 * the wrong version.
 */
#define FT_SINCE __attribute__((weak))

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;

typedef struct qemu_info_t {
	const char *target_name;
	struct {
		int min;
		int cur;
	} version;
	bool system_emulation;
	struct {
		int smp_vcpus;
		int max_vcpus;
	} system;
} qemu_info_t;

enum qemu_plugin_cb_flags {
	QEMU_PLUGIN_CB_NO_REGS,
	QEMU_PLUGIN_CB_R_REGS,
	QEMU_PLUGIN_CB_RW_REGS,
};

enum qemu_plugin_mem_rw {
	QEMU_PLUGIN_MEM_R = 1,
	QEMU_PLUGIN_MEM_W,
	QEMU_PLUGIN_MEM_RW,
};

enum qemu_plugin_op {
	QEMU_PLUGIN_INLINE_ADD_U64,
};

typedef void (*qemu_plugin_vcpu_simple_cb_t)(qemu_plugin_id_t id,
					     unsigned int vcpu);
typedef void (*qemu_plugin_vcpu_udata_cb_t)(unsigned int vcpu, void *udata);
typedef void (*qemu_plugin_vcpu_mem_cb_t)(unsigned int vcpu,
					  qemu_plugin_meminfo_t info,
					  uint64_t vaddr, void *udata);

/* Since version 7 callbacks get a pointer instead of the plugin's id. */
#if FT_API >= 7
typedef void (*qemu_plugin_udata_cb_t)(void *udata);
typedef void (*qemu_plugin_vcpu_tb_trans_cb_t)(struct qemu_plugin_tb *tb,
					       void *udata);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   qemu_plugin_vcpu_tb_trans_cb_t cb,
					   void *udata);
#else
typedef void (*qemu_plugin_udata_cb_t)(qemu_plugin_id_t id, void *udata);
typedef void (*qemu_plugin_vcpu_tb_trans_cb_t)(qemu_plugin_id_t id,
					       struct qemu_plugin_tb *tb);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   qemu_plugin_vcpu_tb_trans_cb_t cb);
#endif

void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id,
				    qemu_plugin_udata_cb_t cb, void *udata);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb,
						 size_t idx);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *insn);
#if FT_API >= 3
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *dest,
			     size_t len);
#else
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
#endif

void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb,
					  qemu_plugin_vcpu_udata_cb_t cb,
					  enum qemu_plugin_cb_flags flags,
					  void *udata);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    qemu_plugin_vcpu_udata_cb_t cb,
					    enum qemu_plugin_cb_flags flags,
					    void *udata);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
				      qemu_plugin_vcpu_mem_cb_t cb,
				      enum qemu_plugin_cb_flags flags,
				      enum qemu_plugin_mem_rw rw, void *udata);

unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info,
						  uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *haddr);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *haddr);

#if FT_HAS_SCOREBOARD
struct qemu_plugin_scoreboard;

typedef struct {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
} qemu_plugin_u64;

FT_SINCE struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element_size);
FT_SINCE void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score,
					   unsigned int vcpu);
FT_SINCE void qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
	struct qemu_plugin_insn *insn, enum qemu_plugin_op op,
	qemu_plugin_u64 entry, uint64_t imm);
#else
FT_SINCE void qemu_plugin_register_vcpu_insn_exec_inline(
	struct qemu_plugin_insn *insn, enum qemu_plugin_op op, void *ptr,
	uint64_t imm);
#endif

#if FT_HAS_REGISTERS
struct qemu_plugin_register;

/* Its size is that of the array's elements, which newer QEMUs have made larger. */
typedef struct {
	struct qemu_plugin_register *handle;
	const char *name;
	const char *feature;
} qemu_plugin_reg_descriptor;

/* GLib's arrays, which QEMU returns; the process has GLib loaded. */
typedef struct {
	void *data;
	unsigned int len;
} GArray;

typedef struct {
	uint8_t *data;
	unsigned int len;
} GByteArray;

GByteArray *g_byte_array_new(void);
GByteArray *g_byte_array_set_size(GByteArray *array, unsigned int length);
unsigned int g_array_get_element_size(GArray *array);
char *g_array_free(GArray *array, int free_segment);

#if FT_API >= 7
typedef void (*qemu_plugin_vcpu_init_cb_t)(unsigned int vcpu, void *udata);
void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id,
				       qemu_plugin_vcpu_init_cb_t cb,
				       void *udata);
#else
typedef qemu_plugin_vcpu_simple_cb_t qemu_plugin_vcpu_init_cb_t;
void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id,
				       qemu_plugin_vcpu_init_cb_t cb);
#endif

FT_SINCE GArray *qemu_plugin_get_registers(void);
/* Returns the size read, or since version 5 whether it was read; appends. */
FT_SINCE int qemu_plugin_read_register(struct qemu_plugin_register *handle,
				       GByteArray *buf);
#endif

#if FT_HAS_TRANSLATE
FT_SINCE bool qemu_plugin_translate_vaddr(uint64_t vaddr, uint64_t *hwaddr);
#endif

#if FT_HAS_DISCON
enum qemu_plugin_discon_type {
	QEMU_PLUGIN_DISCON_INTERRUPT = 1,
	QEMU_PLUGIN_DISCON_EXCEPTION = 2,
};

#if FT_API >= 7
typedef void (*qemu_plugin_vcpu_discon_cb_t)(unsigned int vcpu,
					     enum qemu_plugin_discon_type type,
					     uint64_t from_pc, uint64_t to_pc,
					     void *udata);
FT_SINCE void qemu_plugin_register_vcpu_discon_cb(
	qemu_plugin_id_t id, enum qemu_plugin_discon_type type,
	qemu_plugin_vcpu_discon_cb_t cb, void *udata);
#else
typedef void (*qemu_plugin_vcpu_discon_cb_t)(qemu_plugin_id_t id,
					     unsigned int vcpu,
					     enum qemu_plugin_discon_type type,
					     uint64_t from_pc, uint64_t to_pc);
FT_SINCE void qemu_plugin_register_vcpu_discon_cb(
	qemu_plugin_id_t id, enum qemu_plugin_discon_type type,
	qemu_plugin_vcpu_discon_cb_t cb);
#endif
#endif

#endif
