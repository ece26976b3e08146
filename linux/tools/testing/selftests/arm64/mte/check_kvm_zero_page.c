// SPDX-License-Identifier: GPL-2.0
/*
 * A guest with allocation tags reads memory that its owner has never touched,
 * and is given the zero page of the host. Its tags must be 0, and KVM must not
 * write them: the page may be read-only.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../kselftest.h"

/* Guest addresses */
#define CODE	0x10000UL
#define DATA	0x100000UL
#define DEVICE	0x10000000UL	/* nothing is there: an access ends the run */

#define PAGES	16
#define GRANULE	16

#define CORE_REG(field)							\
	(KVM_REG_ARM64 | KVM_REG_SIZE_U64 | KVM_REG_ARM_CORE |		\
	 KVM_REG_ARM_CORE_REG(regs.field))

static size_t page;

static void *map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		ksft_exit_fail_msg("mmap: %s\n", strerror(errno));
	madvise(p, size, MADV_NOHUGEPAGE);
	return p;
}

static void add_memory(int vm, int slot, uint64_t at, void *p, size_t size)
{
	struct kvm_userspace_memory_region region = {
		.slot = slot, .guest_phys_addr = at, .memory_size = size,
		.userspace_addr = (uintptr_t)p,
	};

	if (ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region))
		ksft_exit_fail_msg("memory: %s\n", strerror(errno));
}

static void set_register(int cpu, uint64_t id, uint64_t value)
{
	struct kvm_one_reg reg = { .id = id, .addr = (uintptr_t)&value };

	if (ioctl(cpu, KVM_SET_ONE_REG, &reg))
		ksft_exit_fail_msg("register: %s\n", strerror(errno));
}

static int create_vm(void)
{
	struct kvm_enable_cap tags = { .cap = KVM_CAP_ARM_MTE };
	int kvm = open("/dev/kvm", O_RDWR), bits, vm;

	if (kvm < 0)
		ksft_exit_skip("no /dev/kvm\n");
	if (ioctl(kvm, KVM_CHECK_EXTENSION, KVM_CAP_ARM_MTE) <= 0)
		ksft_exit_skip("no KVM_CAP_ARM_MTE\n");
	/* Some CPUs have fewer bits than the default, 40 */
	bits = ioctl(kvm, KVM_CHECK_EXTENSION, KVM_CAP_ARM_VM_IPA_SIZE);
	vm = ioctl(kvm, KVM_CREATE_VM, bits > 0 ? KVM_VM_TYPE_ARM_IPA_SIZE(bits) : 0);
	if (vm < 0)
		ksft_exit_fail_msg("KVM_CREATE_VM: %s\n", strerror(errno));
	if (ioctl(vm, KVM_ENABLE_CAP, &tags))
		ksft_exit_skip("no KVM_CAP_ARM_MTE\n");
	return vm;
}

static int create_cpu(int vm, struct kvm_run **run)
{
	struct kvm_vcpu_init init = {};
	int cpu = ioctl(vm, KVM_CREATE_VCPU, 0);

	if (cpu < 0 || ioctl(vm, KVM_ARM_PREFERRED_TARGET, &init) ||
	    ioctl(cpu, KVM_ARM_VCPU_INIT, &init))
		ksft_exit_fail_msg("virtual CPU: %s\n", strerror(errno));
	*run = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, cpu, 0);
	if (*run == MAP_FAILED)
		ksft_exit_fail_msg("struct kvm_run: %s\n", strerror(errno));
	return cpu;
}

/* Returns what the guest reads from its address @from. */
static uint64_t read_in_guest(int cpu, struct kvm_run *run, uint64_t from)
{
	uint64_t value;

	set_register(cpu, CORE_REG(regs[0]), from);
	if (ioctl(cpu, KVM_RUN, 0) || run->exit_reason != KVM_EXIT_MMIO ||
	    run->mmio.phys_addr != DEVICE || !run->mmio.is_write)
		ksft_exit_fail_msg("the guest ended with %u: %s\n",
				   run->exit_reason, strerror(errno));
	memcpy(&value, run->mmio.data, sizeof(value));
	return value;
}

static bool tags_are_zero(int vm, uint64_t at)
{
	char tags[65536 / GRANULE];
	struct kvm_arm_copy_mte_tags copy = {
		.guest_ipa = at, .length = page, .addr = tags,
		.flags = KVM_ARM_TAGS_FROM_GUEST,
	};

	memset(tags, 5, sizeof(tags));
	if (ioctl(vm, KVM_ARM_MTE_COPY_TAGS, &copy) != (int)page)
		ksft_exit_fail_msg("tags: %s\n", strerror(errno));
	for (size_t i = 0; i < page / GRANULE; i++)
		if (tags[i])
			return false;
	return true;
}

int main(void)
{
	static const uint32_t text[] = {
		0xf9400001,	/* ldr x1, [x0] */
		0xf9000041,	/* str x1, [x2] */
		0x17fffffe,	/* b to the first */
	};
	bool zero = true, tags = true;
	struct kvm_run *run;
	int vm, cpu;
	char *code;

	ksft_print_header();
	page = getpagesize();
	vm = create_vm();
	ksft_set_plan(2);
	code = map(page);
	memcpy(code, text, sizeof(text));
	__builtin___clear_cache(code, code + sizeof(text));
	add_memory(vm, 0, CODE, code, page);
	add_memory(vm, 1, DATA, map(PAGES * page), PAGES * page);
	cpu = create_cpu(vm, &run);
	set_register(cpu, CORE_REG(pc), CODE);
	set_register(cpu, CORE_REG(regs[2]), DEVICE);

	for (size_t i = 0; i < PAGES; i++) {
		zero &= !read_in_guest(cpu, run, DATA + i * page);
		tags &= tags_are_zero(vm, DATA + i * page);
	}
	ksft_test_result(zero, "a guest reads zero from untouched memory\n");
	ksft_test_result(tags, "its tags are 0\n");
	ksft_finished();
}
